"""What queues cost: 50,000 gangs wait, with and without 1,000 ClusterQueues.

Each batch is chosen, held against its quotas, made a Problem and decided; then what was
decided counts as held. Times are the processor's. The peer is the same backlog without
queues. `flat`: all queues are in one cohort; `nested`: in 40 cohorts below one.

    python -m benchmarks.solver.queues [--size full] [--json FILE]
"""

from __future__ import annotations

import time
from random import Random

from benchmarks.report import Row, arguments, percentile, report
from contracts.gang import Gang
from contracts.ids import GangUID, NodeName, SolveID
from contracts.messages import DevicesAnnounced, SubmitGang
from solver.allocate import allocate
from solver.problem.assemble import assemble, find_missing_verdicts, resolve_gangs
from solver.problem.problem import Parameters
from solver.problem.quota.asked import count_held
from solver.problem.quota.quotas import keep_quotas
from solver.queueing.gang_queue import GangQueue, urgency_of
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import BatchLimits
from solver.queueing.turns import pick_first
from solver.selectors.table import SelectorTable
from solver.service.messages import make_decision
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DEVICE_CLASS,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import CLUSTER, evaluate, snapshot_of
from tests.builders.queues import (
    cluster_queue,
    cohort,
    flavor,
    local_queue,
    with_queues,
)

PARAMETERS = Parameters(version="benchmark")
NOMINAL = 4


def wanted(number: int, queues: int, draw: Random) -> Gang:
    """Ask for one to four devices in some namespace."""
    pods = member(member_claim(request()), count=draw.choice([1, 1, 1, 2, 4]))
    uid = f"00000000-0000-4000-8000-{number:012}"
    namespace = f"team-{draw.randrange(queues)}"
    return gang(pods, name=f"g{number}", namespace=namespace, uid=uid)


def world(gangs: int, queues: int, seed: int) -> Snapshot:
    """Announce four devices a queue, and submit all gangs."""
    draw = Random(seed)
    snapshot = snapshot_of({})
    for number in range(queues * NOMINAL // 8):
        name = NodeName(f"n{number}")
        pools = (pool(*devices(8), name=name),)
        announced = DevicesAnnounced(cluster=CLUSTER, node=name, pools=pools)
        snapshot = apply(snapshot, announced)
    for number in range(1, gangs + 1):
        item = wanted(number, queues, draw)
        uid = GangUID(item.metadata.uid)
        message = SubmitGang(cluster=CLUSTER, uid=uid, gang=item)
        snapshot = apply(snapshot, message, sequence=number)
    return snapshot


def with_all_queues(snapshot: Snapshot, queues: int, shape: str) -> Snapshot:
    """Give each namespace a queue with a quota of four devices."""
    objects = [flavor("any")]
    for number in range(queues):
        above = "all" if shape == "flat" else f"c{number % 40}"
        quotas = {"any": {DEVICE_CLASS: NOMINAL}}
        objects.append(cluster_queue(f"q{number}", quotas, cohort=above))
        objects.append(local_queue(f"team-{number}", f"q{number}"))
    if shape == "nested":
        objects += [cohort(f"c{number}", {}, parent="all") for number in range(40)]
    return with_queues(snapshot, *objects)


def run(snapshot: Snapshot, shape: str, batches: int) -> Row:
    """Decide so many batches, one after the other."""
    queue, sequence = GangQueue(), 1_000_000
    started = time.process_time()
    queue.follow_queues(snapshot)
    for record in sorted(snapshot.waiting.values(), key=urgency_of):
        queue.follow(record)
    lined_up = time.process_time() - started
    seconds, choosing, decided = [], [], 0
    table, allocated = SelectorTable(), 0
    features = PARAMETERS.features
    for number in range(batches):
        started = time.process_time()
        order = QueueOrder(snapshot, features)
        batch = queue.choose(
            snapshot,
            BatchLimits(),
            admits=order.takes,
            pick=order.pick if order.has_queues else pick_first,
        )
        chosen = time.process_time()
        within = keep_quotas(snapshot, resolve_gangs(snapshot, batch, features))
        while missing := find_missing_verdicts(snapshot, within.gangs, table):
            verdicts = [evaluate(*row) for row in missing]
            table = table.with_verdicts(missing, verdicts)
        problem = assemble(
            snapshot, within.gangs, table, PARAMETERS, quotas=within.quotas
        )
        assert problem.hash
        decision = allocate(problem)
        for record, part, answer in zip(
            batch, within.gangs, decision.gangs, strict=True
        ):
            message = make_decision(
                answer,
                record,
                cluster=CLUSTER,
                solve=SolveID(str(number)),
                epoch=1,
                quota=count_held(part, answer.members),
            )
            if message is not None:
                sequence += 1
                snapshot = apply(snapshot, message, sequence=sequence)
                after = snapshot.gangs.get(record.key)
                assert after is not None
                queue.follow(after)
                allocated += bool(answer.members)
        seconds.append(time.process_time() - started)
        choosing.append(chosen - started)
        decided += len(batch)
    return {
        "queues": shape,
        "gangs decided": decided,
        "allocated": allocated,
        "line up s": lined_up,
        "batch p50 CPU ms": percentile(seconds, 0.5) * 1000,
        "batch p99 CPU ms": percentile(seconds, 0.99) * 1000,
        "choose p50 CPU ms": percentile(choosing, 0.5) * 1000,
        "gangs/CPU s": decided / sum(seconds),
    }


def main() -> None:
    """Measure a backlog with and without queues."""
    options = arguments(__doc__ or "")
    gangs, queues = (2_000, 50) if options.size == "small" else (50_000, 1_000)
    batches = 5 if options.size == "small" else 12
    plain = world(gangs, queues, options.seed)
    rows = [run(plain, "none", batches)]
    rows += [
        run(with_all_queues(plain, queues, shape), shape, batches)
        for shape in ("flat", "nested")
    ]
    report("queues", options, rows)


if __name__ == "__main__":
    main()
