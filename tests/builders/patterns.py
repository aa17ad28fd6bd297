"""Batches as the pattern engine sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contracts.device import ResourcePool
from contracts.gang import Gang, Member
from solver.engines.pattern.columns.model import PatternModel
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from tests.builders.claims import request
from tests.builders.devices import devices, pool
from tests.builders.gangs import gang, member, member_claim, node
from tests.builders.models import DRAWN_UID
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)


def nodes_of_sizes(*sizes: int) -> dict[str, list[ResourcePool]]:
    """Make nodes `n0`, `n1`, ... with so many equal devices."""
    return {
        f"n{index}": [pool(*devices(size), name=f"n{index}")]
        for index, size in enumerate(sizes)
    }


def demand_and_kinds(
    nodes: Mapping[str, Sequence[ResourcePool]],
    *gangs: Gang,
    expected: Iterable[Member] = (),
    size: int = 1000,
) -> tuple[Demand, tuple[NodeKind, ...]]:
    """Make the demand of these gangs and the kinds of these nodes."""
    snapshot = snapshot_of(nodes, gangs)
    coming = expected_of(snapshot, *expected, size=size) if expected else ()
    problem = problem_of(snapshot, PARAMETERS, coming)
    demand = Demand(problem.gangs, expected=problem.expected)
    return demand, find_node_kinds(problem, demand.query)


def pattern_model(
    nodes: Mapping[str, Sequence[ResourcePool]],
    *gangs: Gang,
    expected: Iterable[Member] = (),
    size: int = 1000,
) -> PatternModel:
    """Make the model of these gangs and nodes; what is expected has a value."""
    demand, kinds = demand_and_kinds(nodes, *gangs, expected=expected, size=size)
    return PatternModel(demand, kinds, values_slack=bool(demand.expected))


def gangs_model(
    *pods_and_devices: tuple[int, int], sizes: tuple[int, ...]
) -> PatternModel:
    """Ask nodes of these sizes for a gang for each (pods, devices of each)."""
    return pattern_model(
        nodes_of_sizes(*sizes),
        *(
            gang(
                member(member_claim(request(count=devices)), count=pods),
                name=f"g{index}",
                uid=DRAWN_UID.format(index),
            )
            for index, (pods, devices) in enumerate(pods_and_devices)
        ),
    )


def gangs_with_cpu_model(
    *pods_devices_cpu: tuple[int, int, int],
    nodes: Sequence[tuple[int, int]],
    coarseness: int,
) -> PatternModel:
    """Ask for a gang for each (pods, devices of each, thousandths of a CPU of each).

    `nodes`: (devices, thousandths of a CPU). `coarseness`: how coarsely CPU is counted.
    """
    gangs = [
        gang(
            member(
                member_claim(request(count=count)),
                count=pods,
                resources={"cpu": f"{cpu}m"},
            ),
            name=f"g{index}",
            uid=DRAWN_UID.format(index),
        )
        for index, (pods, count, cpu) in enumerate(pods_devices_cpu)
    ]
    snapshot = snapshot_of(nodes_of_sizes(*(size for size, _ in nodes)), gangs)
    for index, (_, cpu) in enumerate(nodes):
        allocatable: dict[str, int | str] = {"cpu": f"{cpu}m", "pods": 99}
        told = node(f"n{index}", allocatable=allocatable)
        snapshot = observe_core(snapshot, told)
    problem = problem_of(snapshot)
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    return PatternModel(demand, kinds, coarseness=coarseness)
