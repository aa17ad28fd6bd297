"""A fleet without a free device: gangs of many sizes, ages and priorities in racks.

Nodes of 8 GPUs, 40 to a rack. Gangs keep to a rack, their pods on random nodes of it,
so a node has pods of several; pieces that are left go to gangs of one pod. Half of the
gangs save their work now and then.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.worlds.objects import (
    CLUSTER,
    member_claim,
    observed_class,
    request,
    submission,
)
from benchmarks.worlds.topology import DEVICES, GPU, RACK, list_nodes
from contracts.allocation import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from contracts.gang import Member
from contracts.gang_rules import GangTopology
from contracts.ids import ClaimRef, DeviceName, DriverName, NodeName, PoolName, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import (
    ClaimAllocated,
    GangAllocated,
    MemberAllocated,
    SubmitGang,
)
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.candidates import Candidate

IN_RACK = 40
HOUR = 3600
NOW_S = 100 * 24 * HOUR
PRIORITIES = (0, 0, 0, 100, 100, 200, 1000)
"""Of gangs that run; those of 1000 go for nobody."""
PODS = (1, 1, 1, 2, 2, 4, 4, 8, 16)
GPUS = (1, 1, 2, 2, 4, 8)
HOLDS = "gpus"


class FullFleet(Struct, frozen=True):
    """A full cluster, and what runs in it."""

    snapshot: Snapshot
    records: tuple[GangRecord, ...]


class _Pieces:
    """The free devices of the nodes of a rack."""

    def __init__(self, nodes: Sequence[NodeName]) -> None:
        self._free = {node: list(range(DEVICES)) for node in nodes}

    def take(
        self, draw: random.Random, pods: int, gpus: int
    ) -> list[tuple[NodeName, list[int]]]:
        """Take devices for pods on random nodes; none unless there are all."""
        taken = list[tuple[NodeName, list[int]]]()
        for _ in range(pods):
            fits = [node for node, free in self._free.items() if len(free) >= gpus]
            if not fits:
                for node, devices in taken:
                    self._free[node] += devices
                return []
            node = draw.choice(fits)
            draw.shuffle(self._free[node])
            taken.append((node, self._free[node][:gpus]))
            del self._free[node][:gpus]
        return taken

    def take_rest(self) -> list[tuple[NodeName, list[int]]]:
        """Take what is left, node by node."""
        rest = [(node, free) for node, free in self._free.items() if free]
        self._free = {}
        return rest


def fill(nodes: int, seed: int) -> FullFleet:
    """Fill a fleet with gangs."""
    draw, snapshot = random.Random(seed), Snapshot()
    snapshot = apply(snapshot, observed_class(GPU, f'device.driver == "{GPU}"'))
    names = list[NodeName]()
    for number, (inventory, observed) in enumerate(list_nodes(nodes)):
        labels = {RACK: f"r{number // IN_RACK:03}"}
        metadata = {"name": inventory.node, "labels": labels}
        labelled = replace(observed, object={**observed.object, "metadata": metadata})
        snapshot = apply(apply(snapshot, inventory), labelled)
        names.append(inventory.node)
    records = list[GangRecord]()
    for first in range(0, nodes, IN_RACK):
        pieces = _Pieces(names[first : first + IN_RACK])
        misses = 0
        while misses < 20:
            gpus = draw.choice(GPUS)
            places = pieces.take(draw, draw.choice(PODS), gpus)
            misses += not places
            if places:
                snapshot = _start(snapshot, draw, places, records)
        for place in pieces.take_rest():
            snapshot = _start(snapshot, draw, [place], records)
    return FullFleet(snapshot, tuple(records))


def submit(
    fleet: FullFleet, age: int, pods: int, gpus: int, priority: int, *, in_rack: bool
) -> tuple[Snapshot, SubmitGang]:
    """Submit a gang, which must be in one rack or not."""
    message = _submission(age, pods, gpus, priority)
    rules = (GangTopology(key=RACK),) if in_rack else ()
    spec = replace(message.gang.spec, topology=rules)
    message = replace(message, gang=replace(message.gang, spec=spec))
    return apply(fleet.snapshot, message, sequence=age), message


def _submission(age: int, pods: int, gpus: int, priority: int) -> SubmitGang:
    claims = (member_claim(HOLDS, request("gpu", GPU, gpus)),)
    worker = Member(name="worker", count=pods, claims=claims)
    return submission(age, worker, priority=priority)


def _start(
    snapshot: Snapshot,
    draw: random.Random,
    places: list[tuple[NodeName, list[int]]],
    records: list[GangRecord],
) -> Snapshot:
    """Let a gang have its devices."""
    age = len(records) + 1
    asked = _submission(age, len(places), len(places[0][1]), draw.choice(PRIORITIES))
    snapshot = apply(snapshot, asked, sequence=age)
    placed = GangAllocated(
        cluster=CLUSTER,
        namespace=asked.key.namespace,
        uid=asked.uid,
        name=asked.gang.metadata.name,
        solve=SolveID("fill"),
        attempt=1,
        epoch=1,
        members=tuple(
            MemberAllocated(
                member="worker",
                index=index,
                node=node,
                claims=(_hold(asked, index, node, devices),),
            )
            for index, (node, devices) in enumerate(places)
        ),
    )
    snapshot = apply(snapshot, placed, sequence=age)
    record = snapshot.gangs.get(asked.key)
    assert record is not None
    records.append(record)
    return snapshot


def draw_ages(records: Iterable[GangRecord], seed: int) -> tuple[Candidate, ...]:
    """Draw since when gangs run, and when they last saved their work."""
    draw = random.Random(seed)
    return tuple(_draw_age(draw, record) for record in records)


def _draw_age(draw: random.Random, record: GangRecord) -> Candidate:
    ran_s = min(draw.expovariate(1 / (8 * HOUR)), 30 * 24 * HOUR)
    saved = draw.random() < 0.5
    return Candidate(
        record=record,
        started_s=NOW_S - round(ran_s),
        checkpointed_s=NOW_S - round(draw.uniform(0, min(ran_s, HOUR)))
        if saved
        else None,
    )


def _hold(
    asked: SubmitGang, index: int, node: NodeName, devices: list[int]
) -> ClaimAllocated:
    name = f"{asked.gang.metadata.name}-{index}"
    results = tuple(
        DeviceRequestAllocationResult(
            request="gpu",
            driver=DriverName(GPU),
            pool=PoolName(node),
            device=DeviceName(f"d{number}"),
        )
        for number in devices
    )
    return ClaimAllocated(
        claim=HOLDS,
        ref=ClaimRef(asked.key.namespace, name),
        allocation=AllocationResult(devices=DeviceAllocationResult(results=results)),
    )
