"""What one changed node costs: apply, then the Problem of a waiting gang, its answer.

For 100, 1,523 and (full) 10,000 nodes: a node's inventory changes, and the Problem
(selectors known, hashed, new pages encoded) is made again; then it is read and decided
as the worker does, from the pages that it lacks. The peer is the first time, where all
is new. A cost that follows the cluster would show as the ratio of the rows.

    python -m benchmarks.solver.incremental [--size full] [--json FILE]
"""

from __future__ import annotations

import random
import time

from msgspec import structs

from benchmarks.report import Row, arguments, percentile, report
from benchmarks.worlds.fleets import inventories, observed_class, submission, uniform
from contracts.messages import DevicesAnnounced
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.assemble import assemble, find_missing_verdicts, resolve_gangs
from solver.problem.problem import Parameters, Problem
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.record import PartCache
from solver.selectors.table import SelectorTable
from solver.snapshot.snapshot import Snapshot, apply

PARAMETERS = Parameters(version="benchmark")


def changed(message: DevicesAnnounced, draw: random.Random) -> DevicesAnnounced:
    """Take one device away from a node, or give all back."""
    pools = tuple(
        structs.replace(
            pool,
            generation=pool.generation + draw.randint(1, 1_000_000),
            devices=pool.devices[: max(1, len(pool.devices) - draw.randint(0, 1))],
        )
        for pool in message.pools
    )
    return structs.replace(message, pools=pools)


def problem_of(
    snapshot: Snapshot, table: SelectorTable, evaluator: SelectorEvaluator
) -> tuple[Problem, SelectorTable]:
    """Make the Problem of all that waits, as the service does."""
    batch = choose_batch(snapshot, BatchLimits())
    gangs = resolve_gangs(snapshot, batch, PARAMETERS.features)
    while missing := find_missing_verdicts(snapshot, gangs, table):
        table = table.with_verdicts(missing, evaluator.evaluate(missing))
    problem = assemble(snapshot, gangs, table, PARAMETERS)
    assert problem.hash
    return problem, table


def answered(
    cache: PartCache, problem: Problem, known_pages: set[str]
) -> tuple[float, int]:
    """Read and decide a Problem; gives seconds, and how many pages were new."""
    pages = {page.sha: page.data for page in problem.pages}
    new = {sha: data for sha, data in pages.items() if sha not in known_pages}
    started = time.perf_counter()
    allocate(cache.problem(problem.data, new))
    seconds = time.perf_counter() - started
    known_pages.clear()
    known_pages.update(pages)
    return seconds, len(new)


def run(fleet: list[DevicesAnnounced], repeats: int, seed: int) -> Row:
    """Measure one cluster."""
    draw = random.Random(seed)
    snapshot = Snapshot()
    started = time.perf_counter()
    for message in fleet:
        snapshot = apply(snapshot, message)
    applied = time.perf_counter() - started
    snapshot = apply(snapshot, observed_class())
    snapshot = apply(snapshot, submission(1, draw), sequence=1)
    with SelectorEvaluator() as evaluator:
        started = time.perf_counter()
        problem, table = problem_of(snapshot, SelectorTable(), evaluator)
        first = time.perf_counter() - started
        cache, known_pages = PartCache(), set[str]()
        first_answer, _ = answered(cache, problem, known_pages)
        seconds, answers, pages = [], [], []
        with_devices = [message for message in fleet if message.pools]
        for _ in range(repeats):
            message = changed(draw.choice(with_devices), draw)
            started = time.perf_counter()
            snapshot = apply(snapshot, message)
            problem, table = problem_of(snapshot, table, evaluator)
            seconds.append(time.perf_counter() - started)
            answer, new = answered(cache, problem, known_pages)
            answers.append(answer)
            pages.append(new)
    return {
        "nodes": len(fleet),
        "apply all ms": applied * 1000,
        "first problem ms": first * 1000,
        "after a change p50 ms": percentile(seconds, 0.5) * 1000,
        "after a change p99 ms": percentile(seconds, 0.99) * 1000,
        "first answer ms": first_answer * 1000,
        "answer p50 ms": percentile(answers, 0.5) * 1000,
        "answer p99 ms": percentile(answers, 0.99) * 1000,
        "pages made anew": max(pages),
        "pages": len(problem.pages),
    }


def main() -> None:
    """Measure both sizes."""
    options = arguments(__doc__ or "")
    repeats = 200 if options.size == "small" else 2000
    fleets = [inventories(100), inventories()]
    if options.size == "full":
        fleets.append(uniform(10_000))
    rows = [run(fleet, repeats, options.seed) for fleet in fleets]
    report("incremental", options, rows)


if __name__ == "__main__":
    main()
