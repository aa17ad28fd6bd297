"""Documents of files and folders, each with where it came from."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from moorings.cli.documents import read_documents, read_gangs, read_objects, read_state
from moorings.errors import BadInputError, UsageError


def write(file: Path, text: str) -> str:
    file.write_text(text)
    return str(file)


def test_each_document_says_where_it_stands(tmp_path: Path) -> None:
    name = write(tmp_path / "a.yaml", "a: 1\n---\n---\nb: 2\n")
    assert list(read_documents([name])) == [
        (name, {"a": 1}),
        (f"{name}, document 3", {"b": 2}),
    ]


def test_lists_are_taken_apart(tmp_path: Path) -> None:
    text = '{"kind": "List", "apiVersion": "v1", "items": [{"a": 1}, {"b": 2}]}'
    name = write(tmp_path / "a.json", text)
    assert [value for _, value in read_documents([name])] == [{"a": 1}, {"b": 2}]


def test_a_list_of_lists_has_the_version_of_the_list_it_is_in(tmp_path: Path) -> None:
    """In JSON as in YAML; the API server leaves it out of items."""
    items = '[{"metadata": {"name": "a"}}, {"kind": "List", "items": [{"b": [1]}]}]'
    text = f'\n {{"items": {items}, "kind": "NodeList", "apiVersion": "v1"}}'
    expected = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
        {"b": [1]},
    ]
    for end in ("", "\n# so it is no JSON"):
        name = write(tmp_path / "a", text + end)
        assert [value for _, value in read_documents([name])] == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"kind": "List", "items": [1]}', r"items\[0\]: Expected `object`"),
        ('{"kind": "List", "items": {"a": 1}}', "items: Expected `array`"),
        ('{"kind": "List", "items": [{"a": "\\q"}]}', r"a\.json: "),
    ],
)
def test_a_list_without_objects_is_named(
    tmp_path: Path, text: str, problem: str
) -> None:
    name = write(tmp_path / "a.json", text)
    with pytest.raises(BadInputError, match=problem):
        list(read_documents([name]))


@pytest.mark.parametrize("text", ["{a: 1}", '{"a": 1}\n---\n{"b": 2}'])
def test_what_only_begins_like_json_is_yaml(tmp_path: Path, text: str) -> None:
    name = write(tmp_path / "a.yaml", text)
    values = [value for _, value in read_documents([name])]
    assert values == [{"a": 1}, {"b": 2}][: len(values)]
    assert len(values) == text.count("---") + 1


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"a":' * 401 + "1" + "}" * 401,
        "- " * 100_000 + "1",
        "a:\n" + "".join(f"{'  ' * n}- b:\n" for n in range(600)),
    ],
    ids=["flow", "json", "shallower json", "one line", "block"],
)
def test_what_is_nested_without_end_is_refused(tmp_path: Path, text: str) -> None:
    """PyYAML would end the process, be it a server's."""
    name = write(tmp_path / "a.yaml", text)
    with pytest.raises(BadInputError, match="nested over 400 deep"):
        list(read_documents([name]))


def test_what_has_many_brackets_need_not_be_deep(tmp_path: Path) -> None:
    name = write(tmp_path / "a.yaml", f"a: [{'[1], ' * 1000}]")
    assert [len(value["a"]) for _, value in read_documents([name])] == [1000]


def test_a_folder_is_read_in_order_of_its_files(tmp_path: Path) -> None:
    for file in ("b.yaml", "a.yml", "c.txt"):
        write(tmp_path / file, f"name: {file}")
    values = [value["name"] for _, value in read_documents([str(tmp_path)])]
    assert values == ["a.yml", "b.yaml"]


def test_times_stay_text(tmp_path: Path) -> None:
    """As the API server has them."""
    name = write(tmp_path / "a.yaml", "at: 2026-01-02T03:04:05Z")
    assert list(read_documents([name])) == [(name, {"at": "2026-01-02T03:04:05Z"})]


@pytest.mark.parametrize("text", ["a: [", "a: 1: 2"])
def test_what_is_no_yaml_is_named(tmp_path: Path, text: str) -> None:
    name = write(tmp_path / "a.yaml", text)
    with pytest.raises(BadInputError, match=r"a\.yaml: "):
        list(read_documents([name]))


def test_an_empty_folder_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="has no"):
        list(read_documents([str(tmp_path)]))


def test_one_bad_file_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class_text = (
        "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}}"
    )
    good, bad = write(tmp_path / "a.yaml", class_text), str(tmp_path / "b.yaml")
    found = read_objects([bad, good])
    assert [entry.decoded.kind for entry in found.objects] == ["DeviceClass"]
    assert found.failed
    assert f"error: {bad}: No such file" in capsys.readouterr().err
    assert read_objects([good]).failed is False


def test_each_reader_refuses_other_kinds(tmp_path: Path) -> None:
    name = write(
        tmp_path / "a.yaml", "{apiVersion: v1, kind: Node, metadata: {name: one}}"
    )
    with pytest.raises(BadInputError, match="expected a Gang, got Node"):
        read_gangs([name])
    with pytest.raises(BadInputError, match=r"expected a DeviceClass, .* got Node"):
        read_state([name])


def test_state_with_a_field_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """A class without its selectors would be of every device."""
    text = (
        "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c},"
        " spec: {selector: []}}"
    )
    name = write(tmp_path / "a.yaml", text)
    with pytest.raises(BadInputError, match=r"DeviceClass c: spec\.selector: unknown"):
        read_state([name])
    (entry,) = read_objects([name], as_stored=True).objects
    assert entry.decoded.unknown == ("spec.selector",)


@pytest.mark.parametrize("text", ["", "---\n---\n", '{"kind": "List", "items": null}'])
def test_nothing_at_all_is_no_input(tmp_path: Path, text: str) -> None:
    """It may be what is left of a command that failed."""
    name = write(tmp_path / "a.yaml", text)
    with pytest.raises(BadInputError, match=r"a\.yaml: is empty"):
        read_gangs([name])
    assert read_objects([name]).failed


def test_an_empty_list_beside_other_objects_is_an_answer(tmp_path: Path) -> None:
    """As of kubectl, of a kind of which there is none."""
    none = write(tmp_path / "a.yaml", "{apiVersion: v1, kind: List, items: []}")
    some = write(
        tmp_path / "b.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: one}}"
    )
    assert not read_objects([none, some]).failed
    blank = write(tmp_path / "c.yaml", "# nothing\n---\n")
    assert read_objects([some, blank]).failed


def test_an_empty_name_is_not_this_folder() -> None:
    with pytest.raises(UsageError, match="the file name is empty"):
        list(read_documents([""]))


def test_of_a_folder_the_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("gone")
    with pytest.raises(BadInputError, match=r"a\.yaml: No such file"):
        list(read_documents([str(tmp_path)]))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"a: 1"), "compressed with gzip"),
        ("a: 1".encode("utf-16"), "is UTF-16"),
        (b"a: \xff", "is not UTF-8 text"),
    ],
    ids=["gzip", "utf-16", "latin"],
)
def test_what_is_no_text_says_what_it_is(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(data)
    with pytest.raises(BadInputError, match=reason):
        list(read_documents([str(file)]))


def test_a_closed_standard_input_is_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadInputError, match="standard input: is closed"):
        list(read_documents(["-"]))
