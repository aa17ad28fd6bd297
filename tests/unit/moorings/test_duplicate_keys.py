"""What is written twice in one object is refused, however it is written."""

from __future__ import annotations

from typing import Any

import pytest

from moorings.errors import BadInputError
from moorings.manifests import parse_documents


def parse(text: str | bytes) -> list[Any]:
    """Read the documents of a text."""
    return [value for _, value in parse_documents("f", text)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "kind: A\nspec: {}\nkind: B\n",
            "^f: line 3, column 1: key 'kind' appears twice",
        ),
        ("a:\n- {b: 1, b: 2}\n", "^f: line 2, column 10: key 'b' appears twice"),
        ('{"kind": "A", "kind": "B"}', "key 'kind' appears twice"),
        (b'{"spec": {"a": 1, "a": 2}}', "key 'a' appears twice"),
        ('{"a": 1}\n{"b": 1,\n"b": 2}\n', "key 'b' appears twice .* line 2"),
    ],
)
def test_a_key_that_is_there_twice_is_named(text: str | bytes, reason: str) -> None:
    with pytest.raises(BadInputError, match=reason):
        parse(text)


def test_what_is_merged_may_be_written_as_well() -> None:
    assert parse("a: &a {b: 1, c: 1}\nd:\n  <<: *a\n  b: 2\n") == [
        {"a": {"b": 1, "c": 1}, "d": {"b": 2, "c": 1}}
    ]


def test_what_overrides_a_merge_may_be_merged_by_a_shallower_mapping() -> None:
    """PyYAML constructs that first, and merges the deeper node for it."""
    text = "a: &a {b: 1}\nc: {d: {e: &e {<<: *a, b: 2}}}\nf: {<<: *e}\n"
    two = text + "---\n" + text
    assert parse(two) == 2 * [
        {"a": {"b": 1}, "c": {"d": {"e": {"b": 2}}}, "f": {"b": 2}}
    ]
    with pytest.raises(BadInputError, match=r"line 2, .* key 'b' appears twice"):
        parse(text.replace("b: 2", "b: 2, b: 3"))


def test_objects_of_json_may_stand_one_after_the_other() -> None:
    """As `jq -c '.items[]'` prints them."""
    assert parse('{"a": 1}\n{"b": {"c": [2]}}\n') == [{"a": 1}, {"b": {"c": [2]}}]
    with pytest.raises(BadInputError, match="is not YAML"):
        parse('{"a": 1}\n{"b": ')


@pytest.mark.parametrize("written", [r'{"a": "\ud800"}', r'{"\udc00": 1} {}'])
def test_half_a_character_is_refused(written: str) -> None:
    """Python reads it, and then nobody can write it."""
    with pytest.raises(BadInputError, match="is half a character"):
        parse(f"{written}\n{{}}")


def test_a_whole_pair_is_one_character() -> None:
    assert parse(r'{"a": "\ud83d\ude00"} {}')[0] == {"a": "😀"}
