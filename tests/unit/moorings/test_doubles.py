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
        ("kind: A\nspec: {}\nkind: B\n", "line 3, column 1: key 'kind' is there twice"),
        ("a:\n- {b: 1, b: 2}\n", "line 2, column 10: key 'b' is there twice"),
        ('{"kind": "A", "kind": "B"}', "key 'kind' is there twice"),
        (b'{"spec": {"a": 1, "a": 2}}', "key 'a' is there twice"),
        ('{"a": 1}\n{"b": 1,\n"b": 2}\n', "key 'b' is there twice .* line 2"),
    ],
)
def test_a_key_that_is_there_twice_is_named(text: str | bytes, reason: str) -> None:
    with pytest.raises(BadInputError, match=reason):
        parse(text)


def test_what_is_merged_may_be_written_as_well() -> None:
    assert parse("a: &a {b: 1, c: 1}\nd:\n  <<: *a\n  b: 2\n") == [
        {"a": {"b": 1, "c": 1}, "d": {"b": 2, "c": 1}}
    ]


def test_objects_of_json_may_stand_one_after_the_other() -> None:
    """As `jq -c '.items[]'` prints them."""
    assert parse('{"a": 1}\n{"b": {"c": [2]}}\n') == [{"a": 1}, {"b": {"c": [2]}}]
    with pytest.raises(BadInputError, match="is no YAML"):
        parse('{"a": 1}\n{"b": ')
