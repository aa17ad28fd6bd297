"""Neighborhoods over several priorities: weights are combined, and stay small."""

from __future__ import annotations

from typing import Any

from contracts.gang import Gang
from solver.engines.packing.batch import PackingBatch
from solver.engines.packing.cells import CellMaker, PartPatterns
from solver.engines.packing.construct import even_scale
from solver.engines.packing.loads import Loads
from solver.engines.packing.neighborhood import NeighborhoodModel, Scope
from solver.engines.packing.work import Work
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from tests.builders import (
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of

PRIORITIES, LARGE = 12, 10**7


def asking(number: int, pods: int, size: int, **spec: Any) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    wanted = member(member_claim(request(count=size)), count=pods)
    return gang(wanted, name=f"g{number}", uid=uid, **spec)


def many_priorities() -> Problem:
    """More gangs than fit, of sizes that leave something, each level worth millions."""
    pools = {f"n{i}": [pool(*devices(7), name=f"n{i}")] for i in range(6)}
    gangs = [
        asking(
            number,
            1 + number % 3,
            2 + number % 4,
            priority=number,
            weight=LARGE + number,
        )
        for number in range(PRIORITIES)
    ]
    snapshot = observe_core(snapshot_of(pools, gangs), *(node(name) for name in pools))
    return problem_of(snapshot)


def test_many_priorities_of_large_weights_are_no_model_past_64_bits() -> None:
    """The highest are weighed against each other; nothing is lost of the others."""
    problem = many_priorities()
    demand = Demand(problem.gangs)
    batch = PackingBatch(demand, find_node_kinds(problem, demand.query))
    loads = Loads(batch, even_scale(batch))
    assert loads.place_gang(0)
    before = loads.worth()
    scope = Scope(
        nodes=frozenset(range(len(batch.nodes))),
        leaving=frozenset(),
        coming=tuple(range(1, PRIORITIES)),
    )
    makers = (CellMaker(batch), PartPatterns(batch))

    decided = NeighborhoodModel(batch, loads, scope, makers).solve(Work(10.0), 1.0)

    assert decided.is_better
    assert loads.worth() > before
    assert loads.worth()[0] == LARGE + PRIORITIES - 1
    assert loads.worth()[-1] == before[-1]
