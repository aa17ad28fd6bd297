"""Problems of dozens of nodes, by seed: what clusters look like, drawn small.

GPUs and NICs on PCIe roots in NUMA nodes, cards in parts that draw from counters,
shares of devices, lists of alternatives, CPUs and memory; every node used differently.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec import Struct

from contracts.claim import DeviceRequest
from contracts.device import Device, ResourcePool
from contracts.gang import Gang, MemberClaim
from contracts.ids import DeviceID
from contracts.workload import Node
from solver.problem.problem import Problem
from tests.builders import (
    DRIVER,
    constraint,
    counter_set,
    device,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of
from tests.builders.values import Amount, Value

ROOT, NUMA = "resource.kubernetes.io/pcieRoot", f"{DRIVER}/numa"
UID = "00000000-0000-4000-8000-{:012}"
ASKED: list[dict[str, Amount]] = [{}, {"cpu": "3"}, {"cpu": 8, "memory": "12Gi"}]


def of_type(value: str) -> tuple[str]:
    """Select devices of a type."""
    return (f'device.attributes["{DRIVER}"].type == "{value}"',)


class World(Struct, frozen=True, kw_only=True):
    """What a Problem is made of, still to be changed."""

    pools: dict[str, ResourcePool]
    """By node."""
    known: tuple[Node, ...]
    taken: tuple[DeviceID, ...]
    gangs: tuple[Gang, ...]

    @property
    def problem(self) -> Problem:
        """Make the Problem of it."""
        pools = {name: [made] for name, made in self.pools.items()}
        snapshot = snapshot_of(pools, self.gangs, taken=self.taken)
        return problem_of(observe_core(snapshot, *self.known))


def crowd(seed: int) -> Problem:
    """Make a Problem of 20 to 60 nodes and 10 to 40 gangs."""
    return world(seed, nodes=(20, 60), gangs=(10, 40)).problem


def world(seed: int, *, nodes: tuple[int, int], gangs: tuple[int, int]) -> World:
    """Draw a cluster and what is wanted of it; so many at least and at most."""
    draw = random.Random(seed)
    pools, taken, known = {}, list[DeviceID](), list[Node]()
    for index in range(draw.randint(*nodes)):
        name = f"n{index:02}"
        made = _pool(name, draw)
        pools[name] = made
        taken.extend(
            DeviceID(made.driver, made.name, item.name)
            for item in made.devices
            if item.allow_multiple_allocations is None and draw.random() < 0.3
        )
        amounts = {"cpu": draw.choice((8, 16, 32)), "memory": "64Gi", "pods": 20}
        known.append(node(name, allocatable=amounts))
    return World(
        pools=pools,
        known=tuple(known),
        taken=tuple(taken),
        gangs=tuple(_gang(index, draw) for index in range(draw.randint(*gangs))),
    )


def _pool(name: str, draw: random.Random) -> ResourcePool:
    match draw.randrange(3):
        case 0:
            cards = range(2)
            sets = [counter_set(f"card-{card}", eighths=8) for card in cards]
            parts = (item for card in cards for item in _parts(card))
            return pool(*parts, name=name, counters=sets)
        case 1:
            return pool(*_tree(4), *_shares(), name=name)
        case _:
            return pool(*_tree(draw.choice((4, 8))), name=name)


def _shares() -> Iterator[Device]:
    for index in range(2):
        yield device(
            f"vf-{index}",
            attributes={"type": "vf"},
            capacity={"gbps": 4},
            allow_multiple_allocations=True,
        )


def _tree(gpus: int) -> Iterator[Device]:
    for number in range(gpus):
        place: dict[str, Value] = {ROOT: f"pci{number // 2}", "numa": number // 4}
        yield device(f"gpu-{number}", attributes={"type": "gpu", **place})
        if number % 2:
            yield device(f"nic-{number // 2}", attributes={"type": "nic", **place})


def _parts(card: int) -> Iterator[Device]:
    for profile, count, eighths in (("gpu", 1, 8), ("half", 2, 4), ("quarter", 4, 2)):
        for index in range(count):
            yield device(
                f"card-{card}-{profile}-{index}",
                attributes={"type": profile},
                consumes={f"card-{card}": {"eighths": eighths}},
            )


def _gang(index: int, draw: random.Random) -> Gang:
    members = [
        member(
            _claim(draw),
            name=f"m{number}",
            count=draw.randint(1, 4),
            resources=draw.choice(ASKED),
        )
        for number in range(draw.choice((1, 1, 2)))
    ]
    uid, priority = UID.format(index), draw.choice((0, 0, 0, 5))
    return gang(*members, name=f"g{index}", uid=uid, priority=priority)


def _claim(draw: random.Random) -> MemberClaim:
    match draw.randrange(6):
        case 0:
            asked = [_of("gpu", 1), _of("nic", 1)]
            return member_claim(*asked, constraints=(constraint(ROOT),))
        case 1:
            return member_claim(_of("gpu", 2), constraints=(constraint(NUMA),))
        case 2:
            return member_claim(_of(draw.choice(("half", "quarter")), 1))
        case 3:
            capacity = {"gbps": draw.choice((1, 2))}
            return member_claim(request(select=of_type("vf"), capacity=capacity))
        case 4:
            first = sub_request("a", select=of_type("gpu"), count=2)
            then = sub_request("b", select=of_type("half"))
            return member_claim(request(first_available=[first, then]))
        case _:
            return member_claim(_of("gpu", draw.choice((1, 1, 2, 4))))


def _of(kind: str, count: int) -> DeviceRequest:
    return request(kind, count=count, select=of_type(kind))
