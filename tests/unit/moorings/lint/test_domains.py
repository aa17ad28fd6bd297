"""By counting: which domain comes nearest, and how much is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from moorings.lint.domains import find_topology_shortfall
from tests.builders import topology_rule

RACKS = {"r1": 9, "r2": 4, "r3": 14, "r4": 2}


def message_of(
    counts: Mapping[str, int],
    rooms: Mapping[str, int] = RACKS,
    *,
    group_size: int | Literal["Even"] | None = None,
    max_per_domain: int | None = None,
) -> str:
    """Say what falls short where each member has the same room."""
    topology = topology_rule(
        "rack", group_size=group_size, max_per_domain=max_per_domain
    )
    found = find_topology_shortfall(topology, counts, dict.fromkeys(counts, rooms))
    return "" if found is None else found.message


def test_the_nearest_domains_are_named_with_what_they_have() -> None:
    assert message_of({"pod": 16}) == (
        "all 16 pods in one domain of rack: r3 has room for 14 of 16, r1 for 9, "
        "r2 for 4, and 1 more for as many or fewer"
    )


@pytest.mark.parametrize(
    ("counts", "rule", "is_enough"),
    [
        ({"pod": 14}, {}, True),
        ({"pod": 15}, {}, False),
        # Both fit in r3 by count; 20 of one and any of the other in none.
        ({"a": 14, "b": 14}, {}, True),
        ({"a": 14, "b": 15}, {}, False),
        # r3 takes three groups of four, r1 two, r2 one.
        ({"pod": 24}, {"group_size": 4}, True),
        ({"pod": 25}, {"group_size": 4}, True),
        ({"pod": 28}, {"group_size": 4}, False),
        ({"pod": 14}, {"group_size": 20}, True),
        ({"pod": 15}, {"group_size": 20}, False),
        # With at most four of a domain, three domains take one group each.
        ({"pod": 12}, {"group_size": 4, "max_per_domain": 4}, True),
        ({"pod": 16}, {"group_size": 4, "max_per_domain": 4}, False),
        # 18 are two times nine, 24 six times four: only three domains have these.
        ({"pod": 14}, {"group_size": "Even"}, True),
        ({"pod": 18}, {"group_size": "Even"}, True),
        ({"pod": 12}, {"group_size": "Even", "max_per_domain": 4}, True),
        ({"pod": 12}, {"group_size": "Even", "max_per_domain": 3}, False),
        ({"pod": 17}, {"group_size": "Even"}, False),
        ({"pod": 24}, {"group_size": "Even"}, False),
        ({"pod": 4}, {"max_per_domain": 1}, True),
        ({"pod": 5}, {"max_per_domain": 1}, False),
        ({"a": 2, "b": 3}, {"max_per_domain": 1}, False),
    ],
)
def test_what_is_counted_as_enough(
    counts: dict[str, int], rule: dict[str, Any], *, is_enough: bool
) -> None:
    assert bool(message_of(counts, RACKS, **rule)) is not is_enough


def test_groups_are_counted_whole() -> None:
    assert message_of({"pod": 17}, {"r1": 9, "r3": 7}, group_size=8) == (
        "groups of 8 pods of pod, each in one domain of rack: room for 1 of 3 "
        "groups; r1 has room for 9, r3 for 7"
    )


def test_even_parts_are_told_of_the_nearest_division() -> None:
    assert message_of({"pod": 24}, group_size="Even") == (
        "pod: its 24 pods must be in equal parts, each in its own domain of rack; at "
        "best there is room for 2 of 3 parts of 8; r3 has room for 14 of 24, r1 for "
        "9, r2 for 4, and 1 more for as many or fewer"
    )


def test_a_spread_adds_up_all_domains() -> None:
    assert message_of({"pod": 9}, max_per_domain=2) == (
        "at most 2 of 9 pods in one domain of rack: the 4 with room can take 8 of 9"
    )


def test_pods_that_fit_nowhere_have_no_domain() -> None:
    told = message_of({"pod": 2}, {"r1": 0})
    assert told == "all 2 pods in one domain of rack: none has room for a pod"


def test_members_that_are_not_named_do_not_count() -> None:
    rooms = {"worker": {"": 4}, "driver": {"x": 1}}
    counts = {"worker": 4, "driver": 1}
    assert (
        find_topology_shortfall(topology_rule("rack", "worker"), counts, rooms) is None
    )
    told = find_topology_shortfall(topology_rule("rack"), counts, rooms)
    assert told is not None
    assert "(empty) has room for 4 of 5, x for 1" in told.message
