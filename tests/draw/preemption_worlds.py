"""Small full fleets with two queues of one cohort, by seed."""

from __future__ import annotations

import random

from msgspec import Struct

from contracts.kueue import QUEUE_NAME
from contracts.lifecycle import GangRecord
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.timeline import World
from tests.builders.values import DEVICE_CLASS, NAMESPACE
from tests.oracles.plain_preemption import PlainGang, PlainQueue, PlainScene

NOW_S = 1000
QUEUES = ("a", "b")
NEVER_OR = ("Never", "LowerPriority", "LowerPriority")


class PreemptionWorld(Struct):
    """A world, and the same in plain numbers."""

    world: World
    queues: dict[str, PlainQueue]
    nodes: dict[str, int]

    def scene(self) -> PlainScene:
        """Write down what is so now."""
        runs = [read_gang(r) for r in self.world.snapshot.placed.values()]
        return PlainScene(nodes=self.nodes, queues=self.queues, runs=runs)


def draw_world(draw: random.Random) -> PreemptionWorld:
    """Draw an empty fleet and its two queues."""
    nodes, gpus = draw.randint(2, 5), draw.choice((2, 4))
    world = World(nodes, gpus)
    queues = {name: _draw_queue(draw, nodes * gpus) for name in QUEUES}
    for name, queue in queues.items():
        borrow: dict[str, object] = {"policy": queue.borrow}
        if queue.threshold is not None:
            borrow["maxPriorityThreshold"] = queue.threshold
        made = cluster_queue(
            name,
            {"any": {DEVICE_CLASS: queue.nominal}},
            cohort="all",
            preemption={
                "withinClusterQueue": queue.within,
                "reclaimWithinCohort": queue.reclaim,
                "borrowWithinCohort": borrow,
            },
        )
        made["metadata"]["annotations"] = {
            "moorings.dev/preemption-delay": "0s",
            "moorings.dev/patience": draw.choice(("never", "0s")),
        }
        local = local_queue(NAMESPACE, name, name)
        world.snapshot = with_queues(world.snapshot, flavor("any"), made, local)
    return PreemptionWorld(world, queues, {f"n-{n}": gpus for n in range(nodes)})


def draw_full(seed: int) -> PreemptionWorld:
    """Draw a fleet on which gangs run, as many as have a place."""
    draw = random.Random(seed)
    drawn = draw_world(draw)
    for number in range(draw.randint(2, 8)):
        record = submit(draw, drawn, f"g{number}", priority=draw.randint(0, 3) * 10)
        drawn.world.decide(record, drawn.world.snapshot, draw.randint(0, 999))
        if drawn.world[record.name].placed is None:
            drawn.world.cancel(record.name)
    return drawn


def submit(
    draw: random.Random, drawn: PreemptionWorld, name: str, priority: int
) -> GangRecord:
    """Submit a gang of a queue that is drawn."""
    gpus = draw.randint(1, max(drawn.nodes.values()))
    pods, queue = draw.randint(1, 3), draw.choice(QUEUES)
    return submit_to(drawn.world, queue, name, (pods, gpus), priority)


def submit_to(
    world: World, queue: str, name: str, size: tuple[int, int], priority: int
) -> GangRecord:
    """Submit a gang of so many pods with so many devices to a queue."""
    pods, gpus = size
    return world.submit(name, pods, gpus, priority=priority, queue=queue, at_s=NOW_S)


def read_gang(record: GangRecord) -> PlainGang:
    """Write a gang down in plain numbers."""
    assert record.submission is not None
    gang, placed = record.submission.gang, record.placed
    (member,) = gang.spec.members
    (asked,) = member.claims
    assert asked.spec is not None
    (request,) = asked.spec.devices.requests
    assert request.exactly is not None
    return PlainGang(
        name=record.name,
        queue=gang.metadata.labels[QUEUE_NAME],
        priority=gang.spec.priority,
        pods=member.count,
        gpus=request.exactly.count,
        nodes=() if placed is None else tuple(pod.node for pod in placed.members),
    )


def _draw_queue(draw: random.Random, devices: int) -> PlainQueue:
    return PlainQueue(
        nominal=draw.randint(0, devices),
        within=draw.choice(NEVER_OR),
        reclaim=draw.choice((*NEVER_OR, "Any")),
        borrow=draw.choice(NEVER_OR),
        threshold=draw.choice((None, None, 10)),
    )
