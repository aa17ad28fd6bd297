"""Gangs whose devices have a value in common, narrowed to one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.gang import Gang, Member
from contracts.ids import NodeName
from solver.engines.domains import search, values
from solver.engines.domains.search import place_in_domains
from solver.engines.domains.values import Narrowed, narrow_to_values
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.problem.standing import StandingPart
from tests.builders import (
    DRIVER,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import observe_core, problem_of, snapshot_of

RAIL = f"{DRIVER}/rail"
RACK = "example.com/rack"
SAME_RAIL = (gang_constraint(RAIL),)
LIMIT = 1.0


def asking(number: int, *members: Member, **spec: Any) -> Gang:
    spec = {"constraints": SAME_RAIL} | spec
    return gang(*members, name=f"g{number}", uid=DRAWN_UID.format(number), **spec)


def pods(count: int, size: int = 1, name: str = "worker") -> Member:
    return member(member_claim(request(count=size)), name=name, count=count)


def problem(nodes: int, rails: tuple[object, ...], *gangs: Gang) -> Problem:
    """Ask on so many nodes of a rack, each with a device on each of these rails."""
    pools = {
        f"n{number}": [
            pool(
                *(
                    device(f"d{index}", attributes={"rail": rail})  # type: ignore[dict-item]  # drawn values
                    for index, rail in enumerate(rails)
                ),
                name=f"n{number}",
            )
        ]
        for number in range(nodes)
    }
    snapshot = observe_core(
        snapshot_of(pools, gangs), *(node(name, labels={RACK: "a"}) for name in pools)
    )
    return problem_of(snapshot)


def narrowed(asked: Problem) -> Narrowed:
    return narrow_to_values(asked, asked.gangs, work_limit=LIMIT)


def values_of(part: GangPart) -> list[set[object]]:
    """List the values that each member asks for."""
    return [
        {
            value
            for claim in each.claims
            for asked in claim.requests
            for sub in asked.alternatives
            for _, (_, value) in sub.values
        }
        for each in part.members
    ]


def test_gangs_are_on_rails_that_have_room_for_all_of_them() -> None:
    """Two of three, two of two: four and six are no sums of a rail of five."""
    gangs = [asking(n, pods(count)) for n, count in enumerate((3, 2, 3, 2))]
    found = narrowed(problem(5, (0, 1), *gangs))
    assert found.numbers == {0, 1, 2, 3}
    rails = [rail for part in found.gangs for (rail,) in values_of(part)]
    assert sorted(map(str, rails)) == ["0", "0", "1", "1"]
    assert rails[0] != rails[2]
    assert not any(part.constraints for part in found.gangs)


def test_members_have_a_rail_each_where_the_rule_is_about_members() -> None:
    """Three and four are on no rail of four together."""
    rule = (gang_constraint(RAIL, scope="Member"),)
    asked = asking(0, pods(3), pods(4, name="other"), constraints=rule)
    (part,) = narrowed(problem(4, (0, 1), asked)).gangs
    first, second = values_of(part)
    assert first != second


def test_an_attribute_as_a_domain_is_a_value_too() -> None:
    """Required topology by what devices publish; a rule by label stays."""
    rules = (topology_rule(f"attribute:{RAIL}"), topology_rule(RACK))
    asked = asking(0, pods(3), constraints=(), topology=rules)
    (part,) = narrowed(problem(4, (0, 1), asked)).gangs
    assert len(values_of(part)[0]) == 1
    assert part.topology == rules[1:]


@pytest.mark.parametrize(
    "spec",
    [
        {"constraints": (gang_constraint(distinct=RAIL),)},
        {"constraints": (gang_constraint(RAIL), gang_constraint(RAIL, "worker"))},
        {
            "constraints": (),
            "topology": (topology_rule(f"attribute:{RAIL}", mode="Preferred"),),
        },
        {
            "constraints": (),
            "topology": (topology_rule(f"attribute:{RAIL}", group_size=2),),
        },
        {
            "constraints": (),
            "topology": (topology_rule(f"attribute:{RAIL}", max_per_domain=2),),
        },
    ],
    ids=["distinct", "twice", "preferred", "groups", "spread"],
)
def test_other_rules_stay_as_they_are(spec: dict[str, Any]) -> None:
    """Nothing is chosen for them."""
    asked = problem(4, (0, 1), asking(0, pods(3), **spec))
    found = narrowed(asked)
    assert found.gangs == asked.gangs
    assert not found.numbers


def test_a_gang_that_no_value_has_room_for_keeps_its_rule() -> None:
    """Another engine may know more; so with devices of several values."""
    large = problem(2, (0, 1), asking(0, pods(3)))
    assert narrowed(large).gangs == large.gangs
    everything = member(member_claim(request(mode="All")), count=1)
    whole = problem(2, (0,), asking(0, everything))
    assert narrowed(whole).gangs == whole.gangs


def test_beside_pods_that_have_their_place_no_value_is_chosen() -> None:
    """They say which one it is."""
    (alone,) = problem(4, (0, 1), asking(0, pods(3))).gangs
    there = StandingPart(member="worker", index=3, node=NodeName("n3"))
    grown = structs.replace(alone, standing=(there,))
    asked = problem(4, (0, 1)).with_gangs((grown,))
    assert narrowed(asked).gangs == (grown,)


def test_devices_of_a_narrowed_gang_have_its_value() -> None:
    """On each node the very device of the rail, beside those of another gang."""
    asked = problem(4, (0, 1), asking(0, pods(4)), asking(1, pods(3)))
    found = place_in_domains(asked, asked.gangs, work_limit=LIMIT)
    devices = [
        {
            d.device
            for own in item.members
            for pod in own
            for e in pod.devices
            for d in e
        }
        for item in found.placements
    ]
    assert [len(names) for names in devices] == [1, 1]
    assert devices[0] != devices[1]
    assert found.others == ()


def test_a_narrowed_gang_without_a_place_is_left_to_others() -> None:
    """Pods of two devices on one rail fit no node, though the rail has enough."""
    asked = problem(4, (0, 1), asking(0, pods(2, 2)), asking(1, pods(2)))
    found = place_in_domains(asked, asked.gangs, work_limit=LIMIT)
    assert found.others == (0,)
    assert [item.gang for item in found.placements] == [1]


def test_of_many_values_those_with_the_most_room_are_chosen_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rails that come first by name have four devices, the last has eight."""
    monkeypatch.setattr(values, "MOST_VALUES", 1)
    (part,) = narrowed(problem(4, (0, 1, 2, 2), asking(0, pods(5)))).gangs
    assert values_of(part) == [{2}]


def test_the_work_limit_is_of_values_and_domains_together() -> None:
    """Whoever is on a rail took all of it: no model packs the other one."""
    rails = [asking(number, pods(3)) for number in range(3)]
    rack = asking(3, pods(1), constraints=(), topology=(topology_rule(RACK),))
    asked = problem(4, (0, 1), *rails, rack)
    limit = 1e-9
    spent = narrow_to_values(asked, asked.gangs, work_limit=limit).work
    assert spent > limit
    found = place_in_domains(asked, asked.gangs, work_limit=limit)
    assert found.work == spent
    assert 3 in {item.gang for item in found.placements}


def test_values_cost_work_also_where_nobody_is_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods that cannot be counted are left to others."""
    monkeypatch.setattr(search, "MOST_KINDS", 0)
    asked = problem(4, (0, 1), *(asking(number, pods(3)) for number in range(3)))
    found = place_in_domains(asked, asked.gangs, work_limit=LIMIT)
    assert found.others == (0, 1, 2)
    assert found.work == narrowed(asked).work > 0
