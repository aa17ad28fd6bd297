"""The goals of a batch, in the order in which they are pursued."""

from __future__ import annotations

from msgspec import structs

from solver.engines.goals import goals_of
from solver.kinds.demand import Demand
from solver.tiers import Tier
from tests.builders import gang, member, member_claim, pool, request, sub_request
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    problem_of,
    snapshot_of,
)

EITHER = member(
    member_claim(request(first_available=[sub_request("a"), sub_request("b")]))
)


def demand_of(*, expects: bool = False, either: bool = False) -> Demand:
    """Ask for gangs of two priorities."""
    gangs = [
        gang(
            *((EITHER,) if either else ()),
            name=f"g{priority}",
            uid=f"00000000-0000-4000-8000-{priority:012}",
            priority=priority,
        )
        for priority in (1, 7)
    ]
    snapshot = snapshot_of({"n": [pool(name="n")]}, gangs)
    coming = expected_of(snapshot, member()) if expects else ()
    problem = problem_of(snapshot, PARAMETERS, coming)
    return Demand(problem.gangs, expected=problem.expected)


def test_higher_priorities_come_first_and_nodes_touched_last() -> None:
    """What the batch has nothing of is no goal."""
    assert goals_of(demand_of(), Tier.NODES) == [
        (Tier.GANGS, 7),
        (Tier.GANGS, 1),
        (Tier.NODES, None),
    ]
    everything = goals_of(demand_of(expects=True, either=True), Tier.NODES)
    assert [tier for tier, _ in everything] == [
        Tier.GANGS,
        Tier.GANGS,
        Tier.ALTERNATIVES,
        Tier.LEFTOVER,
        Tier.NODES,
    ]


def test_goals_past_the_last_tier_are_not_pursued() -> None:
    """The tiers of a Problem say how far an answer goes."""
    asked = demand_of(expects=True, either=True)
    assert goals_of(asked, Tier.ALTERNATIVES)[-1] == (Tier.ALTERNATIVES, None)
    assert goals_of(asked, Tier.GANGS) == [(Tier.GANGS, 7), (Tier.GANGS, 1)]


def test_extra_pods_are_a_goal_of_the_priorities_that_have_any() -> None:
    """After all gangs, before what the batch prefers."""
    gangs = [
        gang(
            structs.replace(EITHER, count=2, min_count=least),
            name=f"g{priority}",
            uid=f"00000000-0000-4000-8000-{priority:012}",
            priority=priority,
        )
        for priority, least in ((1, 1), (4, 2), (7, 1))
    ]
    problem = problem_of(snapshot_of({"n": [pool(name="n")]}, gangs), PARAMETERS)
    assert goals_of(Demand(problem.gangs), Tier.ALTERNATIVES)[3:] == [
        (Tier.EXTRA, 7),
        (Tier.EXTRA, 1),
        (Tier.ALTERNATIVES, None),
    ]
