"""Gangs that may be in with fewer pods than they ask for, in batches of every size."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.gang import Gang
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines import choose
from solver.engines.choose import DIRECT, PACKING, PATTERN
from solver.engines.elastic import ElasticSearch
from solver.engines.solve import answer
from solver.judge.rules import judge
from solver.problem.growth.grow import MOST_EXTRA
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import (
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

RACK = "example.com/rack"
BY_RACK = (topology_rule(RACK),)
BY_TWO = (topology_rule(RACK, group_size=2),)
FOUR = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
of_every_size = pytest.mark.usefixtures("batch_sizes")


def asking(
    number: int, pods: int, least: int | None = None, size: int = 1, **spec: Any
) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    wanted = member(member_claim(request(count=size)), count=pods, min_count=least)
    return gang(wanted, name=f"g{number}", uid=uid, **spec)


def asked(*gangs: Gang) -> Problem:
    """Ask on four nodes in two racks, with two devices each."""
    pools = {name: [pool(*devices(2), name=name)] for name in FOUR}
    snapshot = observe_core(
        snapshot_of(pools, gangs),
        *(node(name, labels={RACK: rack}) for name, rack in FOUR.items()),
    )
    return problem_of(snapshot)


def decide(*gangs: Gang) -> Decision:
    return allocate(asked(*gangs))


def placed(found: Decision) -> list[int]:
    return [len(each.members) for each in found.gangs]


def tier(found: Decision, name: Tier) -> list[tuple[int | None, int, int | None]]:
    return [(t.priority, t.value, t.bound) for t in found.objective if t.tier is name]


@of_every_size
@pytest.mark.parametrize(
    ("pods", "least", "topology", "expected"),
    [(6, 3, (), 6), (12, 3, (), 8), (12, 9, (), 0), (6, 2, BY_RACK, 4)],
)
def test_a_gang_has_as_many_pods_as_there_is_room_for(
    pods: int, least: int, topology: Any, expected: int
) -> None:
    """From those that it needs up to those that it asks for, the rules kept."""
    found = decide(asking(0, pods, least, topology=topology))
    assert placed(found) == [expected]
    assert [pod.index for pod in found.gangs[0].members] == list(range(expected))
    if topology:
        assert len({FOUR[pod.node] for pod in found.gangs[0].members}) == 1
    if expected:
        assert tier(found, Tier.GANGS)[0][1] == least
        assert tier(found, Tier.EXTRA)[0][:2] == (0, expected - least)


@of_every_size
def test_who_is_in_comes_before_how_many_pods_they_have() -> None:
    """Also where the elastic gang has the higher priority."""
    found = decide(asking(0, 8, 1, priority=5), asking(1, 7))
    assert placed(found) == [1, 7]
    assert found.status is Status.OPTIMAL
    assert tier(found, Tier.EXTRA) == [(5, 0, 0)]


@of_every_size
def test_extra_pods_of_higher_priorities_come_first() -> None:
    """However large those of others are."""
    found = decide(asking(0, 8, 1), asking(1, 4, 1, priority=5))
    assert placed(found) == [4, 4]
    assert tier(found, Tier.EXTRA) == [(5, 3, 3), (0, 3, 3)]


@of_every_size
def test_no_extra_pod_without_its_gang() -> None:
    """The room that it would take goes to gangs that are in."""
    found = decide(asking(0, 12, 9, priority=5), asking(1, 8, 2))
    assert placed(found) == [0, 8]
    assert tier(found, Tier.EXTRA)[1][1] == 6


@of_every_size
def test_groups_are_filled_by_index() -> None:
    """Of groups of two in a rack only the last may be smaller."""
    found = decide(asking(0, 7, 1, size=2, topology=BY_TWO))
    nodes = [FOUR[pod.node] for pod in found.gangs[0].members]
    assert len(nodes) == 4
    assert nodes[0] == nodes[1]
    assert nodes[2] == nodes[3]


@of_every_size
def test_what_has_no_pod_costs_nothing() -> None:
    """A preference about pods that are not there is no merit."""
    prefers = topology_rule(RACK, "spare", mode="Preferred")
    worker = member(member_claim(request(count=2)), count=4)
    spare = member(member_claim(request(count=2)), name="spare", count=2, min_count=0)
    found = decide(gang(worker, spare, topology=(prefers,)))
    assert placed(found) == [4]
    assert tier(found, Tier.TOPOLOGY) == [(None, 0, 0)]


@pytest.mark.parametrize("engine", [DIRECT, PATTERN])
def test_engines_that_are_named_find_the_same(engine: str) -> None:
    """The direct model has extra pods as they are, others one by one."""
    found = answer(asked(asking(0, 8, 2), asking(1, 6, 3, priority=1)), engine)
    assert found.status is Status.OPTIMAL
    values = [(t.tier, t.priority, t.value, t.bound) for t in found.tiers]
    assert values[:4] == [
        (Tier.GANGS, 1, 3, 3),
        (Tier.GANGS, 0, 2, 2),
        (Tier.EXTRA, 1, 3, 3),
        (Tier.EXTRA, 0, 0, 0),
    ]


def test_pods_past_what_one_batch_asks_for_are_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may come later; the bound is all of them."""
    assert MOST_EXTRA > 1000
    monkeypatch.setattr(choose, "WHOLE", 0)
    monkeypatch.setattr(f"{ElasticSearch.__module__}.MOST_EXTRA", 2)
    constructed = allocate(asked(asking(0, 6, 1)))
    assert placed(constructed) == [6]
    no_floor = "solver.engines.solve.at_least_constructed"
    monkeypatch.setattr(no_floor, lambda *given: given[-1])
    found = allocate(asked(asking(0, 6, 1)))
    assert placed(found) == [3]
    assert tier(found, Tier.EXTRA) == [(0, 2, 5)]
    assert found.status is Status.FEASIBLE


def test_the_judge_counts_the_pods_of_each_member() -> None:
    """Too few, too many or others than the first ones are refused."""
    problem = asked(asking(0, 4, 2))
    found = allocate(problem)
    (decided,) = found.gangs
    for kept, says in (
        (decided.members[:1], "has 1 of 2 worker"),
        ((*decided.members[:2], decided.members[3]), "other pods"),
        (decided.members[:3], "has not 2 extra"),
    ):
        wrong = structs.replace(decided, members=kept)
        violations = judge(problem, structs.replace(found, gangs=(wrong,)))
        assert any(says in text for text in violations), says
    bounds = tuple(
        structs.replace(t, bound=1) if t.tier is Tier.EXTRA else t
        for t in found.objective
    )
    assert "past value 2" in judge(problem, structs.replace(found, objective=bounds))[0]


def test_beside_an_elastic_gang_others_keep_their_engine() -> None:
    """A batch that the direct model would not decide in time is not given to it."""
    names = [f"n{number:03}" for number in range(200)]
    pools = {name: [pool(*devices(2), name=name)] for name in names}
    gangs = [asking(number, 4) for number in range(90)]
    growing = [asking(90, 60, 4), asking(91, 6, 2, topology=BY_RACK)]
    racks = [node(name, labels={RACK: name[:3]}) for name in names]
    snapshot = observe_core(snapshot_of(pools, [*gangs, *growing]), *racks)
    found = allocate(problem_of(snapshot))
    assert found.statistics.engine not in {"", DIRECT}
    assert all(each.members for each in found.gangs)
    assert sum(placed(found)) == 400
    assert tier(found, Tier.EXTRA)[0][1] == 400 - 90 * 4 - 4 - 2
    rack = {pod.node[:3] for pod in found.gangs[-1].members}
    assert len(rack) == 1


def test_a_gang_that_is_out_leaves_nobody_to_ask_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of its pods has room, its extra ones too, and all that it needs have not."""
    monkeypatch.setattr(choose, "WHOLE", 0)
    claim = member_claim(request(count=1))
    one = member(claim, name="one", count=6, min_count=5)
    other = member(claim, name="other", count=6, min_count=5, resources={"cpu": 1})
    pools = {name: [pool(*devices(2), name=name)] for name in FOUR}
    snapshot = observe_core(
        snapshot_of(pools, [gang(one, other)]), *(node(name) for name in FOUR)
    )
    coming = expected_of(snapshot, member())

    found = allocate(problem_of(snapshot, PARAMETERS, coming))

    assert placed(found) == [0]
    assert found.statistics.engine == PACKING
