"""Queues and cohorts with quotas, and gangs that ask for them, by seed."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from msgspec import structs

from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import GangKey, SolveID
from contracts.messages import GangAllocated, QuotaHeld
from contracts.quantity import Quantity
from solver.problem.assemble import resolve_gangs
from solver.problem.quota.asked import count_asked
from solver.problem.quota.quotas import keep_quotas
from solver.queueing.gang_queue import GangQueue, urgency_of
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import BatchLimits
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import gang, member
from tests.builders.problems import CLUSTER, snapshot_of
from tests.builders.queues import (
    cluster_queue,
    cohort,
    flavor,
    local_queue,
    with_queues,
)
from tests.oracles.brute_queues import Node, Wanted

FLAVORS = ["f0", "f1"]
RESOURCES = ["memory", "example.com/licence"]


def draw_nodes(random: Random, limited: float = 0.3) -> list[Node]:
    """Draw up to six queues in up to four cohorts, nested or not.

    `limited`: the part of the cohorts that have quotas of their own.
    """
    cohorts = [f"c{number}" for number in range(random.randint(0, 4))]
    nodes = []
    for number, name in enumerate(cohorts):
        above = random.choice(["", *cohorts[:number]])
        if above or random.random() < 0.5:
            nodes.append(
                Node(
                    name, above, draw_quotas(random, limited), draw_weight(random), True
                )
            )
    for number in range(random.randint(1, 6)):
        above = random.choice(["", *cohorts, *cohorts])
        made = Node(f"q{number}", above, draw_quotas(random, 1), draw_weight(random))
        made.try_next = random.random() < 0.3
        if not above:
            made.quotas = {w: (q[0], None, None) for w, q in made.quotas.items()}
        nodes.append(made)
    return nodes


def draw_weight(random: Random) -> Fraction:
    return random.choice([Fraction(1)] * 3 + [Fraction(2), Fraction(1, 2), Fraction(0)])


def draw_quotas(
    random: Random, chance: float
) -> dict[tuple[str, str], tuple[int, int | None, int | None]]:
    """Draw quotas of both resources, of one flavor or of both."""
    if random.random() > chance:
        return {}
    flavors = random.choice([FLAVORS, FLAVORS[:1]])
    return {
        (name, resource): (
            random.randint(0, 8),
            random.choice([None, None, random.randint(0, 5)]),
            random.choice([None, None, random.randint(0, 8)]),
        )
        for name in flavors
        for resource in RESOURCES
    }


def draw_gangs(random: Random, nodes: list[Node]) -> list[Wanted]:
    """Draw gangs of these queues."""
    queues = [node.name for node in nodes if not node.is_cohort]
    return [
        Wanted(
            age,
            random.choice(queues),
            random.choice([0, 0, 0, 5]),
            {r: random.randint(1, 4) for r in RESOURCES if random.random() < 0.8}
            or {RESOURCES[0]: 1},
        )
        for age in range(1, random.randint(2, 14))
    ]


def write(node: Node) -> dict[str, Any]:
    """Write a node as an object."""
    quotas: dict[str, Any] = {}
    for (name, resource), amounts in node.quotas.items():
        quotas.setdefault(name, {})[resource] = amounts
    weight = str(float(node.weight)) if node.weight != 1 else ""
    if node.is_cohort:
        return cohort(node.name, quotas, parent=node.parent, weight=weight)
    spec = {}
    if node.try_next:
        spec["flavorFungibility"] = {"whenCanBorrow": "TryNextFlavor"}
    return cluster_queue(node.name, quotas, cohort=node.parent, weight=weight, **spec)


def write_gang(wanted: Wanted) -> Gang:
    amounts = {r: Quantity.parse(str(a)) for r, a in wanted.amounts.items()}
    return gang(
        structs.replace(member(resources=amounts), claims=()),
        name=f"g{wanted.age}",
        namespace=f"ns-{wanted.queue}",
        uid=f"00000000-0000-4000-8000-{wanted.age:012}",
        priority=wanted.priority,
    )


def world(nodes: list[Node], gangs: list[Wanted]) -> Snapshot:
    """Believe in all of it."""
    snapshot = snapshot_of({}, map(write_gang, gangs))
    queues = [node.name for node in nodes if not node.is_cohort]
    return with_queues(
        snapshot,
        *map(flavor, FLAVORS),
        *map(write, nodes),
        *(local_queue(f"ns-{name}", name) for name in queues),
    )


def run(snapshot: Snapshot, size: int) -> tuple[list[tuple[int, str]], Snapshot]:
    """Let the queue choose, batch by batch; whom quota lets in is in.

    Returns the gangs in their order, each with its flavor, and the cluster then.
    """
    queue, found, sequence = GangQueue(), list[tuple[int, str]](), 1000
    for record in sorted(snapshot.waiting.values(), key=urgency_of):
        queue.follow(record)
    while True:
        order = QueueOrder(snapshot, Features())
        batch = queue.choose(
            snapshot, BatchLimits(gangs=size), admits=order.takes, pick=order.pick
        )
        if not batch:
            return found, snapshot
        within = keep_quotas(snapshot, resolve_gangs(snapshot, batch, Features()))
        for record, part in zip(batch, within.gangs, strict=True):
            flavors = part.queue.flavors if part.queue else {}
            found.append(
                (record.submission_sequence, min(flavors.values(), default=""))
            )
            if part.refused:
                continue
            assert part.queue is not None
            held = QuotaHeld(
                cluster_queue=part.queue.name,
                flavors=flavors,
                amounts=count_asked(part, part.queue),
            )
            sequence += 1
            message = GangAllocated(
                cluster=CLUSTER,
                namespace=record.namespace,
                uid=record.uid,
                name=part.name,
                solve=SolveID("s"),
                attempt=1,
                epoch=1,
                quota=held,
            )
            snapshot = apply(snapshot, message, sequence=sequence)
            queue.follow(snapshot.gangs.get(GangKey(record.namespace, record.uid)))  # type: ignore[arg-type]  # it is known
