"""What metrics cost: a count of the cluster, a scrape, and beside a decision.

    python -m benchmarks.solver.metrics [--size full] [--nodes N ...]

count:     the census of a cluster for /metrics: the first one, one after a batch was
           decided, and one after nothing changed.
scrape:    an answer of /metrics over HTTP with as many series as labels may have.
decision:  what counting a batch takes, from its submissions to its gates, and what
           deciding it takes without the bus; the median of 21 counts.

The cluster has nodes with 8 GPUs, partly used; batches have 256 gangs at most. Times
are CPU time, which others on the machine change least; a scrape's is that of both ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from typing import cast

from benchmarks.report import Row, parser, percentile, print_tables, write
from benchmarks.solver.full_path import Decided, Decider
from benchmarks.solver.scale import submitted
from benchmarks.worlds import same_kinds
from benchmarks.worlds.objects import CLUSTER
from contracts.ids import GangKey, SolveID
from contracts.lifecycle import LifecycleMessage
from contracts.messages import AllocationWritten, GangAllocated, GatesOpened, SubmitGang
from contracts.streams import STREAMS
from runtime.bus.bus import Bus
from runtime.health import serve_health
from runtime.metrics import QueueMetrics, count_refused, observe_gang
from solver.cel.evaluator import SelectorEvaluator
from solver.service import metrics
from solver.service.census import Census
from solver.service.latencies import Latencies
from solver.service.messages import make_decision
from solver.snapshot.snapshot import Snapshot, apply

NODES = {"small": (1_000,), "full": (1_000, 10_000)}
BATCH = 256
SCRAPES = 20
REPEATS = 21
STAGES = ("decision", "allocated", "written", "gates", "bound")
MANY = 1_000
"""More values of each label than there may be series."""
ADDRESS = "127.0.0.1:18080"


def decide(snapshot: Snapshot, gangs: list[SubmitGang]) -> tuple[Decided, float]:
    """Decide a batch; the second time, when everything is known."""
    snapshot = submitted(snapshot, gangs)
    with SelectorEvaluator() as evaluator:
        decider = Decider(evaluator)
        decider.decide(snapshot)
        started = time.process_time()
        decided = decider.decide(snapshot)
        return decided, time.process_time() - started


def decisions_of(snapshot: Snapshot, decided: Decided) -> Iterator[GangAllocated]:
    """Make the messages of those that are in."""
    for answer in decided.decision.gangs:
        record = snapshot.waiting.get(answer.key)
        if record is None:
            continue
        message = make_decision(
            answer,
            record,
            cluster=CLUSTER,
            solve=SolveID("s"),
            epoch=1,
        )
        if isinstance(message, GangAllocated):
            yield message


async def count_row(nodes: int, snapshot: Snapshot, after: Snapshot) -> Row:
    """Count a cluster, then what a batch changed, then nothing."""
    with SelectorEvaluator() as evaluator:
        census = Census(
            cast("Bus", None),
            evaluator,
            Latencies(),
            leads=lambda: True,
            every_s=1.0,
        )
        row: dict[str, str | float | int] = {"nodes": nodes}
        for name, known in (("first", snapshot), ("after a batch", after)):
            started = time.process_time()
            await census.count(known)
            row[f"{name} ms"] = (time.process_time() - started) * 1e3
        started = time.process_time()
        await census.count(after)
        return {**row, "unchanged ms": (time.process_time() - started) * 1e3}


async def scrape_row(nodes: int) -> Row:
    """Ask for everything, with all the series that there may be."""
    for number in range(MANY):
        count_refused(f"entity-{number}", ours=bool(number % 2))
        for stage in STAGES:
            observe_gang(stage, f"namespace-{number:060}", number, 1.0)
    for stream in STREAMS:
        metrics.STREAM_BYTES.labels(stream.name).set(stream.max_bytes)
        metrics.STREAM_LIMIT.labels(stream.name).set(stream.max_bytes)
    took_ms, size = [], 0
    async with serve_health(ADDRESS, lambda: True, "ADDRESS"):
        for _ in range(SCRAPES):
            started = time.process_time()
            reader, writer = await asyncio.open_connection(*ADDRESS.split(":"))
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            size = len(await reader.read())
            writer.close()
            took_ms.append((time.process_time() - started) * 1e3)
    return {
        "nodes": nodes,
        "bytes": size,
        "p50 ms": percentile(took_ms, 0.5),
        "most ms": max(took_ms),
    }


def decision_row(
    nodes: int, gangs: list[SubmitGang], decided: Decided, decided_s: float
) -> Row:
    """Count a batch as the service does, and compare."""
    said = [message for gang in gangs for message in _life_of(gang)]
    counted_s = percentile([_count(gangs, said, decided) for _ in range(REPEATS)], 0.5)
    return {
        "nodes": nodes,
        "gangs": len(gangs),
        "decide ms": decided_s * 1e3,
        "count ms": counted_s * 1e3,
        "per cent": counted_s / decided_s * 100,
    }


def _count(
    gangs: list[SubmitGang], said: list[LifecycleMessage], decided: Decided
) -> float:
    """Count a batch once; gives the seconds that it took."""
    latencies, work = Latencies(), QueueMetrics[GangKey]("benchmark")
    keys = [gang.key for gang in gangs]
    started = time.process_time()
    for key in keys:
        work.added(key)
        work.taken(key)
        work.done(key)
    for at, message in enumerate(said):
        for stage in latencies.note(message, float(at)):
            observe_gang(*stage)
    metrics.observe_decision(decided.decision)
    metrics.observe_stages(dict.fromkeys(("model", "solve", "judge"), 0.1))
    return time.process_time() - started


def _life_of(gang: SubmitGang) -> Iterator[LifecycleMessage]:
    namespace, uid = gang.key.namespace, gang.key.uid
    yield gang
    yield GangAllocated(
        cluster=CLUSTER,
        namespace=namespace,
        uid=uid,
        name="",
        solve=SolveID("s"),
        attempt=1,
        epoch=1,
        members=(),
    )
    yield AllocationWritten(cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1)
    yield GatesOpened(cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1, state=1)


def main() -> None:
    """Measure each size."""
    arguments = parser("what metrics cost")
    arguments.add_argument("--nodes", type=int, nargs="*")
    options = arguments.parse_args()
    tables: dict[str, list[Row]] = {"count": [], "scrape": [], "decision": []}
    for nodes in options.nodes or NODES[options.size]:
        snapshot, free = same_kinds.cluster(nodes, options.seed)
        demand = same_kinds.full_demand(free, options.seed)
        gangs = list(islice(demand, BATCH))
        decided, decided_s = decide(snapshot, gangs)
        waiting = submitted(snapshot, gangs)
        after = waiting
        for place, message in enumerate(decisions_of(waiting, decided), start=1):
            after = apply(after, message, sequence=place)
        tables["count"].append(asyncio.run(count_row(nodes, waiting, after)))
        tables["scrape"].append(asyncio.run(scrape_row(nodes)))
        alone, alone_s = decide(snapshot, gangs[:1])
        for batch, found, found_s in (
            (gangs[:1], alone, alone_s),
            (gangs, decided, decided_s),
        ):
            tables["decision"].append(decision_row(nodes, batch, found, found_s))
    write("solver.metrics", options, print_tables(tables))


if __name__ == "__main__":
    main()
