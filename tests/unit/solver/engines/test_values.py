"""Gangs whose devices have a value in common, narrowed to one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.gang import Gang, Member
from contracts.ids import NodeName
from solver.allocate import allocate
from solver.engines import choose, values
from solver.engines.values import Narrowed, narrow_to_values
from solver.problem.gangs import GangPart
from solver.problem.growth.standing import StandingPart
from solver.problem.problem import Problem
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
    return narrow_to_values(asked, asked.gangs)


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
    found = narrowed(problem(5, (0, 1), *gangs)).gangs
    assert sorted(found) == [0, 1, 2, 3]
    rails = [rail for n in range(4) for (rail,) in values_of(found[n])]
    assert sorted(map(str, rails)) == ["0", "0", "1", "1"]
    assert rails[0] != rails[2]
    assert not any(part.constraints for part in found.values())


def test_gangs_are_spread_over_rails_where_all_have_room() -> None:
    """The largest first, each on the rail with most left: nodes are used as a whole."""
    gangs = [asking(n, pods(count)) for n, count in enumerate((1, 2, 3, 2))]
    found = narrowed(problem(9, (0, 1), *gangs)).gangs
    rails = [str(*values_of(found[n])[0]) for n in range(4)]
    assert rails[2] == rails[0] != rails[1] == rails[3]


def test_requests_that_mean_the_same_devices_share_the_room_of_a_rail() -> None:
    """By class alone, and by a selector beside it: three of each are on one rail."""
    named = member_claim(request(select=(f'device.driver == "{DRIVER}"',)))
    gangs = (asking(0, pods(3)), asking(1, member(named, count=3)))
    found = narrowed(problem(4, (0, 1), *gangs)).gangs
    assert values_of(found[0]) != values_of(found[1])


def test_the_most_valuable_gangs_have_a_value_where_not_all_do() -> None:
    """Of a higher priority first, then those of more weight."""
    gangs = (
        asking(0, pods(3), weight=9),
        asking(1, pods(3), weight=1, priority=1),
        asking(2, pods(3), weight=8),
    )
    assert sorted(narrowed(problem(3, (0, 1), *gangs)).gangs) == [0, 1]


def test_members_have_a_rail_each_where_the_rule_is_about_members() -> None:
    """Three and four are on no rail of four together."""
    rule = (gang_constraint(RAIL, scope="Member"),)
    asked = asking(0, pods(3), pods(4, name="other"), constraints=rule)
    (part,) = narrowed(problem(4, (0, 1), asked)).gangs.values()
    first, second = values_of(part)
    assert first != second


def test_an_attribute_as_a_domain_is_a_value_too() -> None:
    """Required topology by what devices publish; a rule by label stays."""
    rules = (topology_rule(f"attribute:{RAIL}"), topology_rule(RACK))
    asked = asking(0, pods(3), constraints=(), topology=rules)
    (part,) = narrowed(problem(4, (0, 1), asked)).gangs.values()
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
    assert not narrowed(asked).gangs


def test_a_gang_that_no_value_has_room_for_keeps_its_rule() -> None:
    """Another engine may know more; so with devices of several values."""
    large = problem(2, (0, 1), asking(0, pods(3)))
    assert not narrowed(large).gangs
    everything = member(member_claim(request(mode="All")), count=1)
    whole = problem(2, (0,), asking(0, everything))
    assert not narrowed(whole).gangs


def test_beside_pods_that_have_their_place_no_value_is_chosen() -> None:
    """They say which one it is."""
    (alone,) = problem(4, (0, 1), asking(0, pods(3))).gangs
    there = StandingPart(member="worker", index=3, node=NodeName("n3"))
    grown = structs.replace(alone, standing=(there,))
    asked = problem(4, (0, 1)).with_gangs((grown,))
    assert not narrowed(asked).gangs


def test_devices_of_a_narrowed_gang_have_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On each node the very device of the rail, beside those of another gang."""
    monkeypatch.setattr(choose, "WHOLE", 0)
    asked = problem(4, (0, 1), asking(0, pods(4)), asking(1, pods(3)))
    devices = [
        {
            result.device
            for pod in answer.members
            for claim in pod.claims
            for result in claim.allocation.devices.results
        }
        for answer in allocate(asked).gangs
    ]
    assert [len(names) for names in devices] == [1, 1]
    assert devices[0] != devices[1]


def test_a_narrowed_gang_without_a_place_is_left_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods of two devices on one rail fit no node, though the rail has enough."""
    monkeypatch.setattr(choose, "WHOLE", 0)
    asked = problem(4, (0, 1), asking(0, pods(2, 2)), asking(1, pods(2)))
    found = allocate(asked)
    assert [bool(answer.members) for answer in found.gangs] == [False, True]


def test_of_many_values_those_with_the_most_room_are_chosen_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rails that come first by name have four devices, the last has eight."""
    monkeypatch.setattr(values, "MOST_VALUES", 1)
    (part,) = narrowed(problem(4, (0, 1, 2, 2), asking(0, pods(5)))).gangs.values()
    assert values_of(part) == [{2}]
