"""Which engine has the last word where what is left over has a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import cast

import pytest

from contracts.claim import DeviceConstraint
from contracts.device import ResourcePool
from contracts.gang import Gang, Member
from contracts.ids import FullyQualifiedName
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines import leftover
from solver.engines.choose import Decide, Decided, EngineChoice
from solver.engines.goals import EngineResult
from solver.engines.greedy import states
from solver.engines.greedy.search import GreedySearch
from solver.engines.leftover import LeftoverSearch
from solver.engines.tier_values import weight_in
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.placement import GangPlacement
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import gang, member, member_claim, request
from tests.builders.devices import device, pool
from tests.builders.models import DRAWN_UID
from tests.builders.patterns import nodes_of_sizes
from tests.builders.problems import PARAMETERS, expected_of, problem_of, snapshot_of
from tests.builders.values import DRIVER

EIGHT = member(member_claim(request(count=8)))


def of_pods(number: int, *sizes: int) -> Gang:
    """Ask for a pod of each size."""
    members = [
        member(member_claim(request(count=size)), name=f"m{i}")
        for i, size in enumerate(sizes)
    ]
    return gang(*members, name=f"g{number}", uid=DRAWN_UID.format(number))


def problem(sizes: tuple[int, ...], *gangs: Gang) -> Problem:
    snapshot = snapshot_of(nodes_of_sizes(*sizes), gangs)
    expected = expected_of(snapshot, EIGHT, size=8000)
    return problem_of(snapshot, PARAMETERS, expected)


def tier(decision: Decision, wanted: Tier) -> tuple[int, int | None]:
    (found,) = (item for item in decision.objective if item.tier is wanted)
    return found.value, found.bound


def test_a_single_pod_s_place_is_proven() -> None:
    """All places were looked at."""
    decision = allocate(problem((8,) * 100, of_pods(0, 1)))
    assert decision.status is Status.OPTIMAL
    assert decision.statistics.engine == "greedy"
    assert tier(decision, Tier.LEFTOVER) == (8000, 8000)
    assert tier(decision, Tier.NODES) == (1, 1)


def test_where_all_fit_no_model_is_made() -> None:
    """All gangs with their first choices: that needs no other proof."""
    gangs = [of_pods(number, 1, 2) for number in range(8)]
    decision = allocate(problem((8,) * 20, *gangs))
    assert decision.status is Status.OPTIMAL
    assert decision.statistics.engine == "greedy"
    assert tier(decision, Tier.GANGS) == (24, 24)
    assert tier(decision, Tier.LEFTOVER) == (24_000, None)


def test_what_does_not_fit_one_by_one_is_decided_together() -> None:
    """Pairs first would leave no room for pods of three; a model finds it."""
    gangs = [of_pods(number, 5, 3, 5, 3, 4, 4, 6, 2) for number in range(4)]
    decision = allocate(problem((8,) * 16, *gangs))
    assert tier(decision, Tier.GANGS) == (128, 128)
    used = Counter(m.node for g in decision.gangs for m in g.members)
    assert len(used) == 16


def test_the_most_valuable_gangs_are_in() -> None:
    """An old small gang is not worth a large one that needs its node."""
    gangs = [of_pods(number, 1) for number in range(10)] + [of_pods(10, *(8,) * 10)]
    decision = allocate(problem((8,) * 10, *gangs))
    assert decision.status is Status.OPTIMAL
    assert tier(decision, Tier.GANGS) == (80, 80)


def test_goals_that_a_new_place_would_undo_are_not_pursued() -> None:
    """Who is in is proven; the nodes are those of the last placing."""
    gangs = [of_pods(number, 5, 3) for number in range(12)]
    decision = allocate(problem((8,) * 10, *gangs))
    assert decision.statistics.engine == "pattern"
    assert tier(decision, Tier.GANGS) == (80, 80)
    assert tier(decision, Tier.NODES) == (10, None)


def crowd_of_large() -> Problem:
    """Ask for more than there is, in more pods than are placed in both orders."""
    sizes = ((4, 4, 2, 2, 1, 1), (8, 8), (1,) * 8, (3, 5, 3))
    gangs = [of_pods(number, *sizes[number % 4]) for number in range(160)]
    return problem((8, 8, 5, 7) * 40, *gangs)


def test_a_large_batch_beyond_all_devices_is_placed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who is in is decided first: all one after the other cannot be."""
    asked = crowd_of_large()
    runs = list[int]()
    run = GreedySearch.run

    def counted(self: GreedySearch, gangs: Iterable[int]) -> tuple[GangPlacement, ...]:
        order = list(gangs)
        runs.append(len(order))
        return run(self, order)

    monkeypatch.setattr(GreedySearch, "run", counted)
    decision = allocate(asked)
    assert decision.statistics.engine == "packing"
    assert runs == [sum(bool(gang.members) for gang in decision.gangs)]
    monkeypatch.setattr(leftover, "MOST_COMPARED", 1_000_000)
    assert allocate(asked).objective[0] == decision.objective[0]
    assert runs[1:3] == [160, 160]


def test_a_large_batch_that_is_not_decided_is_placed_one_by_one() -> None:
    """What an engine leaves out for want of work is placed all the same."""
    asked = crowd_of_large()
    demand = Demand(asked.gangs, expected=asked.expected)
    kinds = find_node_kinds(asked, demand.query)

    def give_up(*_: object) -> Decided:
        return EngineChoice("pattern"), EngineResult(status=Status.NOT_PROVEN)

    _, result = LeftoverSearch(asked, demand, kinds, cast("Decide", give_up)).run()
    in_turn = GreedySearch(demand, kinds).run(range(160))
    assert weight_in(demand, result.placements, 0) >= weight_in(demand, in_turn, 0) > 0


def test_what_was_not_all_weighed_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two equal pods, one to a node; on some nodes of three sorts they lose nothing."""
    attribute = FullyQualifiedName(f"{DRIVER}/numa")
    together = DeviceConstraint(requests=(), match_attribute=attribute)

    def pods_of(devices: int, count: int = 1) -> Member:
        claim = member_claim(request(count=devices), constraints=(together,))
        return member(claim, count=count)

    def node_of(name: str, sizes: tuple[int, ...]) -> list[ResourcePool]:
        devices = [
            device(f"gpu-{numa}-{i}", attributes={"numa": numa})
            for numa, size in enumerate(sizes)
            for i in range(size)
        ]
        return [pool(*devices, name=name)]

    looks = [(2, 1, 1), *[(3, 1, 1)] * 19, *[(2, 1)] * 20]
    nodes = {f"n{k:02}": node_of(f"n{k:02}", look) for k, look in enumerate(looks)}
    pair = gang(pods_of(2, 2), name="pair", uid=DRAWN_UID.format(0))
    snapshot = snapshot_of(nodes, [pair])
    expected = expected_of(snapshot, pods_of(3), size=3000)
    drawn = problem_of(snapshot, PARAMETERS, expected)
    assert tier(allocate(drawn), Tier.LEFTOVER) == (0, 0)
    monkeypatch.setattr(states, "MOST_WORK", 0)
    assert tier(allocate(drawn), Tier.LEFTOVER) == (3000, None)
