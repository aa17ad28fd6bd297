"""Which groups of a tree a gang begins with."""

from __future__ import annotations

import pytest

from contracts.pods.group_trees import GroupNode
from contracts.pods.membership import COMPOSITE, POD_GROUP, OwnerKey


def leaf(name: str, needed: int) -> GroupNode:
    return GroupNode(key=OwnerKey(POD_GROUP, "ns", name), needed=needed, member=name)


def tree(name: str, needed: int, *children: GroupNode) -> GroupNode:
    key = OwnerKey(COMPOSITE, "ns", name)
    return GroupNode(key=key, needed=needed, children=children)


BOTH = tree("x", 2, leaf("a", 2), tree("y", 1, leaf("b", 1), leaf("c", 3)))


@pytest.mark.parametrize(
    ("there", "core"),
    [
        ({}, None),
        ({"a": 2}, None),
        ({"a": 1, "b": 1}, None),
        ({"a": 2, "b": 1}, ["a", "b"]),
        ({"a": 5, "c": 3}, ["a", "c"]),
        ({"a": 2, "b": 1, "c": 3}, ["a", "b"]),
    ],
)
def test_it_begins_with_the_first_whole_groups(
    there: dict[str, int], core: list[str] | None
) -> None:
    assert BOTH.is_whole(there) == (core is not None)
    if core is not None:
        assert list(BOTH.list_core(there)) == core


@pytest.mark.parametrize(
    ("member", "running", "part"),
    [
        ("c", set(), "x"),
        ("c", {"a"}, "y"),
        ("c", {"a", "b"}, "c"),
        ("c", {"c"}, "c"),
        ("a", {"a", "b"}, "a"),
    ],
)
def test_what_comes_beside_running_pods_is_the_largest_part_without_any(
    member: str, running: set[str], part: str
) -> None:
    assert BOTH.find_part(member, running).key.name == part


@pytest.mark.parametrize(
    ("there", "text"),
    [
        ({}, "0 of 2 groups of x are whole (0 of 2 pods a are there)"),
        (
            {"a": 2, "c": 1},
            (
                "1 of 2 groups of x are whole (0 of 1 group of y is whole "
                "(0 of 1 pod b is there))"
            ),
        ),
    ],
)
def test_what_is_missing_is_described(there: dict[str, int], text: str) -> None:
    assert BOTH.describe_missing(there) == text


def test_members_are_those_of_all_levels() -> None:
    assert BOTH.members == ("a", "b", "c")
    assert tree("empty", 1).describe_missing({}) == "0 of 1 group of empty is whole"
