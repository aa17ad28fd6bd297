"""Which gangs come to parts that are each in one domain."""

from __future__ import annotations

import pytest

from contracts.gang_rules import GangTopology
from solver.engines.domains.parts import DomainPart, PodRange, find_parts
from tests.builders import gang, member, member_claim, request, topology_rule
from tests.builders.patterns import demand_and_kinds, nodes_of_sizes

RACK, BLOCK = "example.com/rack", "example.com/block"
WORKERS = member(member_claim(request()), name="worker", count=5)
LOADER = member(member_claim(request(count=2)), name="loader", count=1)


def parts_of(*topology: GangTopology) -> tuple[DomainPart, ...] | None:
    asked = gang(WORKERS, LOADER, topology=topology)
    demand, _ = demand_and_kinds(nodes_of_sizes(1), asked)
    return find_parts(demand).get(0)


def test_all_pods_are_one_part() -> None:
    """Both members, in one rack; labels are numbered by name."""
    everybody = (PodRange(0, 0, 5), PodRange(1, 0, 1))
    assert parts_of(topology_rule(RACK)) == (DomainPart((0,), everybody),)
    both = (topology_rule(RACK), topology_rule(BLOCK))
    assert parts_of(*both) == (DomainPart((0, 1), everybody),)


def test_each_group_is_a_part() -> None:
    """The last group may be smaller."""
    found = parts_of(topology_rule(RACK, group_size=2))
    assert found is not None
    assert [part.ranges for part in found] == [
        (PodRange(0, 0, 2),),
        (PodRange(0, 2, 2),),
        (PodRange(0, 4, 1),),
        (PodRange(1, 0, 1),),
    ]


def test_members_without_a_rule_are_a_part_without_labels() -> None:
    """They may be anywhere."""
    assert parts_of(topology_rule(RACK, "worker")) == (
        DomainPart((0,), (PodRange(0, 0, 5),)),
        DomainPart((), (PodRange(1, 0, 1),)),
    )


def test_what_is_preferred_makes_parts_where_that_is_asked_for() -> None:
    """As what is required does; both may be on one gang."""
    rules = (topology_rule(BLOCK), topology_rule(RACK, mode="Preferred"))
    asked = gang(WORKERS, LOADER, topology=rules)
    demand, _ = demand_and_kinds(nodes_of_sizes(1), asked)
    everybody = (PodRange(0, 0, 5), PodRange(1, 0, 1))
    assert find_parts(demand) == {}
    assert find_parts(demand, keeps_preferences=True) == {
        0: (DomainPart((0, 1), everybody),)
    }


@pytest.mark.parametrize(
    "topology",
    [
        (topology_rule(BLOCK), topology_rule(RACK, group_size=2)),
        (topology_rule(RACK, max_per_domain=1),),
        (topology_rule(RACK, group_size=1),),
        (topology_rule(RACK, mode="Preferred"),),
        (topology_rule("attribute:gpu.example.com/clique"),),
    ],
)
def test_other_rules_are_not_cut(topology: tuple[GangTopology, ...]) -> None:
    """Groups inside of groups, limits by domain, preferences, attributes."""
    assert parts_of(*topology) is None
