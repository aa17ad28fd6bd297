"""What gangs are worth at most, by what all nodes have together."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import Device, ResourcePool
from contracts.gang import Gang
from solver.engines.relaxation import SCALE, CapacityProgram, cost_of
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders import (
    DRIVER,
    counter_set,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import observe_core, problem_of, snapshot_of


def asking(number: int, *requests: Any, pods: int = 1, **terms: Any) -> Gang:
    """Ask for these in each of some pods; each gang is worth 1."""
    terms = {"weight": 1, **terms}
    resources = terms.pop("resources", None)
    return gang(
        member(member_claim(*requests), count=pods, resources=resources),
        name=f"g{number}",
        uid=DRAWN_UID.format(number),
        **terms,
    )


def program_of(
    nodes: dict[str, list[ResourcePool]], *gangs: Gang
) -> tuple[Demand, CapacityProgram]:
    """Make the program of these gangs; nodes have eight CPUs."""
    snapshot = snapshot_of(nodes, gangs)
    known = (node(name, allocatable={"cpu": 8, "pods": 100}) for name in nodes)
    problem = problem_of(observe_core(snapshot, *known))
    demand = Demand(problem.gangs)
    return demand, CapacityProgram(demand, find_node_kinds(problem, demand.query))


def two_nodes(*content: Device, **terms: Any) -> dict[str, list[ResourcePool]]:
    return {name: [pool(*content, name=name, **terms)] for name in ("a", "b")}


@pytest.mark.parametrize(
    ("asked", "bound"),
    [
        # (devices a pod, pods, weight) of gangs; nodes have 6 devices.
        ([(1, 3, None), (1, 3, None)], 6),
        ([(2, 2, None), (2, 2, None)], 4),  # one pod of two to a node
        ([(2, 2, 10), (2, 2, 5)], 10),
        ([(2, 1, 10), (1, 4, 6)], 16),
        ([(3, 2, 7), (1, 1, 5)], 10),
    ],
)
def test_devices_bound_what_gangs_are_worth(
    asked: list[tuple[int, int, int | None]], bound: int
) -> None:
    """The most valuable per device first, the last one in parts."""
    gangs = [
        asking(number, request(count=each), pods=pods, weight=weight)
        for number, (each, pods, weight) in enumerate(asked)
    ]
    _, program = program_of(two_nodes(*devices(3)), *gangs)
    assert program.relax(0).bound == bound
    assert program.relax(1).bound == 0


def test_resources_of_nodes_bound_them() -> None:
    """Of 16 CPUs three gangs with five each are had; seven devices would do."""
    nodes = two_nodes(*devices(8))
    gangs = [asking(n, request(), resources={"cpu": 5}) for n in range(7)]
    _, program = program_of(nodes, *gangs)
    assert program.relax(0).bound == 2, "one of five CPUs to a node of eight"
    many = [asking(n, request(), resources={"cpu": 3}) for n in range(7)]
    few = [asking(7 + n, request(), resources={"cpu": 1}) for n in range(4)]
    assert program_of(nodes, *many, *few)[1].relax(0).bound == 8


def test_devices_of_a_model_bound_those_who_need_it() -> None:
    """Who takes any model is not bound by it."""
    content = [
        device(f"d{n}", attributes={"model": "red" if n < 1 else "blue"})
        for n in range(4)
    ]
    red = (f'device.attributes["{DRIVER}"].model == "red"',)
    picky = [asking(n, request(select=red)) for n in range(4)]
    content_with = two_nodes(*content)
    assert program_of(content_with, *picky)[1].relax(0).bound == 2
    alternatives = request(
        first_available=[sub_request("red", select=red), sub_request("any")]
    )
    flexible = [asking(4 + n, alternatives) for n in range(4)]
    assert program_of(content_with, *picky, *flexible)[1].relax(0).bound == 6


def test_parts_of_cards_are_counted_by_what_they_draw() -> None:
    """Two cards: as a whole, in halves or in quarters, but not all at once."""
    cards = [
        device(
            f"{name}-{n}",
            attributes={"type": name},
            consumes={"card": {"eighths": eighths}},
        )
        for name, count, eighths in (("whole", 1, 8), ("half", 2, 4), ("quarter", 4, 2))
        for n in range(count)
    ]
    nodes = two_nodes(*cards, counters=[counter_set("card", eighths=8)])

    def of_type(name: str) -> Any:
        return request(select=(f'device.attributes["{DRIVER}"].type == "{name}"',))

    gangs = [asking(n, of_type("whole")) for n in range(2)]
    gangs += [asking(2 + n, of_type("half"), pods=2) for n in range(2)]
    _, program = program_of(nodes, *gangs)
    assert program.relax(0).bound == 2


SHARED = device("vf", capacity={"gbps": 10}, allow_multiple_allocations=True)


@pytest.mark.parametrize(
    ("sizes", "bound"),
    [
        ([4, 4, 4, 4, 4], 4),  # two fit on each of two devices
        ([6, 6, 6], 2),  # no two of more than a half
        ([6, 6, 6, 4, 4, 4], 4),
        ([2, 3, 4, 5, 6, 7, 8], 5),  # 4 + 6 and 2 + 3 + 5
        ([3, 3, 4, 5, 6, 7, 8], 4),  # of 20, and a part of the next
    ],
)
def test_shares_are_counted_by_their_size(sizes: list[int], bound: int) -> None:
    """And the large ones also by how many of them a device has room for."""
    gangs = [
        asking(n, request(capacity={"gbps": size})) for n, size in enumerate(sizes)
    ]
    _, program = program_of(two_nodes(SHARED), *gangs)
    assert program.relax(0).bound == bound


def test_shares_of_two_capacities_are_bounded_together() -> None:
    """No two of either kind fit on a device, but one of each does."""
    both = device(
        "vf", capacity={"gbps": 10, "queues": 10}, allow_multiple_allocations=True
    )
    sizes = [(9, 1), (1, 9)] * 3
    gangs = [
        asking(n, request(capacity={"gbps": gbps, "queues": queues}))
        for n, (gbps, queues) in enumerate(sizes)
    ]
    _, program = program_of(two_nodes(both), *gangs)
    assert program.relax(0).bound == 4


def test_prices_tell_who_is_worth_what_it_takes() -> None:
    """Three devices a node: the gang with the lesser weight a device costs more."""
    gangs = [
        asking(0, request(count=2), pods=2, weight=8),
        asking(1, request(count=1), pods=3, weight=3),
    ]
    demand, program = program_of(two_nodes(*devices(3)), *gangs)
    prices = program.relax(0).prices
    rich, poor = demand.gang_kinds
    assert cost_of(rich, prices) < SCALE * rich.weight
    assert cost_of(poor, prices) >= SCALE * poor.weight - SCALE // 1000
