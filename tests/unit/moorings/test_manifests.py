"""What people write is read whole, or refused with where and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.kubernetes.decode import flatten
from moorings.duplicate_keys import MOST_KEYS, MOST_LOOKED_AT
from moorings.errors import BadInputError
from moorings.manifests import MAX_YAML, parse_documents, read_gang, to_text_or_json
from nodeagent.sources.fleet import read_fleet

QUICKSTART = Path("docs/quickstart/gang.yaml")


def quickstart() -> dict[str, Any]:
    """Parse the gang that newcomers submit."""
    ((_, raw),) = parse_documents(QUICKSTART.name, QUICKSTART.read_text())
    found: dict[str, Any] = raw
    return found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [b\n", r"a.yaml: is not YAML: line 2, column 1: .* flow sequence$"),
        ("a: b: c", r"a.yaml: is not YAML: line 1, column 5: mapping values are not"),
        (
            "a: b\n\u2013--\nc: d\n",
            "`\u2013--` has a dash that is not ASCII: documents",
        ),
    ],
    ids=["never closed", "two keys", "long dash"],
)
def test_what_is_no_yaml_is_told_by_line_and_column(text: str, why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        list(parse_documents("a.yaml", text))


@pytest.mark.parametrize("form", ['{{"a": {}}}', '{{"a": [{}]}}'])
def test_an_endless_number_is_told_with_its_file(form: str) -> None:
    """In JSON; in YAML Kubernetes takes it for a text."""
    with pytest.raises(BadInputError, match=r"^a\.yaml: "):
        list(parse_documents("a.yaml", form.format("9" * 5000)))


def test_a_misspelled_wish_is_refused_and_not_forgotten() -> None:
    """Else one device would be given for two, and any rack for one."""
    raw = quickstart()
    (asked,) = raw["spec"]["members"][0]["claims"][0]["spec"]["devices"]["requests"]
    asked["exactly"]["cuont"] = asked["exactly"].pop("count")
    with pytest.raises(BadInputError, match=r"Gang my-gang: spec\..*cuont: unknown"):
        read_gang("a.yaml", raw)
    with pytest.raises(BadInputError, match=r"Gang my-gang: specs: unknown"):
        read_gang("a.yaml", {**quickstart(), "specs": {}})


@pytest.mark.parametrize("metadata", [{}, {"generateName": "my-gang-"}])
def test_a_gang_that_is_submitted_has_a_name(metadata: dict[str, str]) -> None:
    """On the bus nobody makes one of generateName."""
    with pytest.raises(BadInputError, match=r"a.yaml: Gang: metadata.name: required$"):
        read_gang("a.yaml", {**quickstart(), "metadata": metadata})


def test_what_a_cluster_adds_to_a_gang_is_no_wish() -> None:
    """So a gang may be submitted as `kubectl get` prints it."""
    raw = quickstart()
    raw["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    raw["status"] = {"anything": 1}
    assert read_gang("a.yaml", raw)[1].metadata.name == "my-gang"


def test_the_gang_of_the_quick_start_asks_for_devices_of_the_small_fleet() -> None:
    _, gang = read_gang("gang.yaml", quickstart())
    small = read_fleet(Path("moorings/fleets/small.yaml").read_text(), "small")
    drivers = {devices.driver for shape in small.nodes for devices in shape.devices}
    (claim,) = gang.spec.members[0].claims
    assert claim.spec is not None
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    assert request.exactly.device_class_name in drivers


@pytest.mark.parametrize(
    "others",
    [
        '"kind": "List"',
        '"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}',
        '"kind": "NodeList", "apiVersion": "v1", "remainingItemCount": 0',
        '"kind": "List", "items": [{"kind": "Gang"}]',
        '"kind": "Chest", "apiVersion": "v1"',
        '"kind": 1',
        '"apiVersion": "v1"',
    ],
)
@pytest.mark.parametrize("items", ["[]", '[{"a": 1}, {"kind": "Pod"}]', "null", "[1]"])
def test_a_list_is_read_as_if_it_were_parsed_as_a_whole(
    others: str, items: str
) -> None:
    """Whatever other fields it has, and in whichever order: of two the last counts."""
    text = f'{{{others}, "items": {items}}}'
    whole: list[Any] | str
    try:
        whole = list(flatten(json.loads(text)))
    except DecodeError as error:
        whole = f"a.json: {error}"
    try:
        found: list[Any] | str = [
            raw for _, raw in parse_documents("a.json", text + " " * MOST_LOOKED_AT)
        ]
    except BadInputError as error:
        found = str(error)
    assert found == whole


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "List", "items": [{"kind": "Node"}, {"kind": "Gang"}]}',
        ' {"kind": "Node", "metadata": {"name": "caf\\u00e9"}}',
        '{"kind": "Node", "metadata": {"name": "café"}}',
        "{kind: Node}\r\n---\r\nkind: Gang\rspec: {}\n",
        '{"kind": "Node"}\n{"kind": "Node"}',
        "kind: Node\n",
        "{",
        "",
    ],
)
def test_a_file_is_read_as_its_text_is(text: str, tmp_path: Path) -> None:
    """JSON in ASCII is never made a text; lines end as they end in files."""
    path = tmp_path / "a.yaml"
    path.write_bytes(text.encode())

    def read(found: str | bytes) -> list[Any] | str:
        try:
            return list(parse_documents("a.yaml", found))
        except BadInputError as error:
            return str(error)

    data = to_text_or_json(path.read_bytes())
    assert isinstance(data, bytes) == (text.isascii() and text.lstrip()[:1] == "{")
    assert read(data) == read(path.read_text())


def test_an_object_of_too_many_keys_is_refused() -> None:
    """200,000 took `migrate` 14 s."""
    text = "data:\n" + "".join(f"  k{n}: v\n" for n in range(MOST_KEYS + 1))
    with pytest.raises(
        BadInputError, match="line 2, column 3: an object of 20001 keys"
    ):
        list(parse_documents("a.yaml", text))


def test_a_long_text_of_yaml_is_refused_unread() -> None:
    with pytest.raises(BadInputError, match="is YAML of over 32 MiB; JSON may be"):
        list(parse_documents("a.yaml", "# " + "x" * MAX_YAML))
