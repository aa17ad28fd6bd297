"""Large clusters in one process: from a Snapshot to a judged Decision.

    python -m benchmarks.solver.scale [--family NAME ...] [--nodes N ...] [--size full]

same:   nodes with 8 GPUs, partly used in 15 ways; mixed gangs ask for 1.3 x what is
        free. The peer is the direct model alone, for so many seconds.
mixed:  8 shapes of node, each used differently; 30 kinds of pod.
none:   a gang of 10 pods x 8 GPUs on a cluster without a free device; then, with all
        else known, another one. Once with nothing known, once with all nodes read and
        hashed, as in a service that has started; in seconds of the processor, too.
one:    one pod after the other, everything else known already.

Each row runs in a process of its own, so that its peak memory is its own. Making the
cluster is not timed; selectors are evaluated anew, but their sandbox is started.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.report import Row, parser, percentile, print_table, write
from benchmarks.solver.direct_peer import direct_alone
from benchmarks.solver.full_path import Decided, Decider
from benchmarks.worlds import mixed_nodes, mixed_pods, same_kinds
from benchmarks.worlds.objects import CLUSTER, member_claim, request, submission
from contracts.gang import Member
from contracts.ids import SolveID
from contracts.messages import SubmitGang
from solver.cel.evaluator import SelectorEvaluator
from solver.judge.rules import judge
from solver.service.messages import make_decision
from solver.snapshot.snapshot import Snapshot, apply

Task = Callable[[], Row]
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "same": {"small": (100, 1_000), "full": (100, 1_000, 10_000, 30_000)},
    "mixed": {"small": (300,), "full": (300, 2_000, 10_000)},
    "none": {"small": (500,), "full": (500, 10_000)},
    "one": {"small": (1_000,), "full": (10_000,)},
}
"""Nodes of the rows of each family."""
PEER_NODES = {"small": (100,), "full": (100, 1_000)}
PEER_S = {"small": 10.0, "full": 60.0}
NOTHING_READ, NODES_READ = "nothing", "nodes"
"""What is known before the first gang."""
STEPS = {"small": 50, "full": 500}
"""Pods, one after the other."""


def same(nodes: int, seed: int) -> Row:
    """Decide mixed gangs on nodes of few kinds."""
    snapshot, free = same_kinds.cluster(nodes, seed)
    return decided_row(nodes, snapshot, same_kinds.full_demand(free, seed))


def mixed(nodes: int, seed: int) -> Row:
    """Decide gangs of 30 kinds of pod on nodes that are all used differently."""
    snapshot, free = mixed_nodes.cluster(nodes, seed)
    return decided_row(nodes, snapshot, mixed_pods.full_demand(free, seed))


def none(nodes: int, seed: int, *, known: str) -> Row:
    """Refuse a gang on a cluster without a free device, then another one."""
    snapshot, _ = same_kinds.cluster(nodes, seed, free=0.0)
    row: dict[str, str | float | int] = {"nodes": nodes, "known": known}
    with SelectorEvaluator() as evaluator:
        decider = Decider(evaluator)
        if known == NODES_READ:
            decider.read_ahead(snapshot)
        for age, when in ((1, "first"), (2, "next")):
            gang = one_gang(age, pods=10, gpus=8)
            decided = decider.decide(apply(snapshot, gang, sequence=age))
            answer = answer_of(decided)
            row |= {
                "reasons": answer["reasons"],
                f"{when} CPU s": decided.cpu_s,
                f"{when} problem s": decided.problem_s,
                f"{when} solve s": decided.solve_s,
                f"{when} total s": decided.problem_s + decided.solve_s,
            }
            assert not answer["gangs in"]
    return {**row, "peak MiB": peak_mib()}


def decided_row(nodes: int, snapshot: Snapshot, gangs: Iterable[SubmitGang]) -> Row:
    """Decide all at once; the judge is timed apart, by judging once more."""
    snapshot = submitted(snapshot, gangs)
    with SelectorEvaluator() as evaluator:
        decided = Decider(evaluator).decide(snapshot)
    started = time.perf_counter()
    assert not judge(decided.problem, decided.decision)
    judge_s = time.perf_counter() - started
    return {
        "nodes": nodes,
        **answer_of(decided),
        "problem s": decided.problem_s,
        "solve s": decided.solve_s,
        "of it judge s": judge_s,
        "total s": decided.problem_s + decided.solve_s,
        "peak MiB": peak_mib(),
        "models": decided.decision.statistics.models,
        "variables": decided.decision.statistics.variables,
    }


def submitted(snapshot: Snapshot, gangs: Iterable[SubmitGang]) -> Snapshot:
    """Believe in submissions, the first the oldest."""
    for age, message in enumerate(gangs, start=1):
        snapshot = apply(snapshot, message, sequence=age)
    return snapshot


def answer_of(decided: Decided) -> dict[str, str | float | int]:
    """Return what was decided; value and bound are of the first tier."""
    gangs, decision = decided.problem.gangs, decided.decision
    first = decision.objective[0] if decision.objective else None
    cells: dict[str, str | float | int] = {
        "gangs": len(gangs),
        "pods": sum(gang.pods for gang in gangs),
        "node kinds": decision.statistics.node_kinds,
        "status": decision.status,
        "gangs in": sum(gang.verdict == "allocated" for gang in decision.gangs),
    }
    if first is not None:
        cells["value"] = first.value
        if first.bound is not None:
            cells["bound"] = first.bound
            cells["gap %"] = gap_percent(first.value, first.bound)
    why = {str(reason.rule) for gang in decision.gangs for reason in gang.reasons}
    return {**cells, "reasons": " ".join(sorted(why))}


def peak_mib() -> int:
    """Return how much memory this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def gap_percent(value: int, bound: int) -> float:
    """Return by how much of the bound an answer may be short."""
    return 100 * (bound - value) / bound if bound else 0.0


def one(nodes: int, seed: int, *, steps: int) -> Row:
    """Decide one pod after the other; the first, cold, does not count."""
    snapshot, _ = same_kinds.cluster(nodes, seed)
    seconds: dict[str, list[float]] = {"apply": [], "problem": [], "solve": []}
    with SelectorEvaluator() as evaluator:
        decider = Decider(evaluator)
        for age in range(1, steps + 2):
            started = time.perf_counter()
            gang = one_gang(age, pods=1, gpus=1)
            snapshot = apply(snapshot, gang, sequence=age)
            applied = time.perf_counter() - started
            decided = decider.decide(snapshot)
            started = time.perf_counter()
            snapshot = taken_in(snapshot, decided, age)
            applied += time.perf_counter() - started
            seconds["apply"].append(applied)
            seconds["problem"].append(decided.problem_s)
            seconds["solve"].append(decided.solve_s)
    row: dict[str, str | float | int] = {"nodes": nodes, "pods": steps}
    seconds["all"] = [sum(spent) for spent in zip(*seconds.values(), strict=True)]
    for step, spent in seconds.items():
        row[f"{step} p50 ms"] = percentile(spent[1:], 0.5) * 1e3
        row[f"{step} p99 ms"] = percentile(spent[1:], 0.99) * 1e3
    first_ms = seconds["all"][0] * 1e3
    return {**row, "first ms": first_ms, "peak MiB": peak_mib()}


def one_gang(age: int, *, pods: int, gpus: int) -> SubmitGang:
    """Submit a gang of equal pods."""
    gpu_request = request("gpu", same_kinds.CLASS, gpus, same_kinds.MODEL)
    claims = (member_claim("gpus", gpu_request),)
    return submission(age, Member(name="worker", count=pods, claims=claims))


def taken_in(snapshot: Snapshot, decided: Decided, sequence: int) -> Snapshot:
    """Believe in a decision of one gang, which must be in."""
    (answer,) = decided.decision.gangs
    record = snapshot.gangs.get(answer.key)
    assert record is not None
    solve = SolveID(f"{sequence}")
    message = make_decision(answer, record, cluster=CLUSTER, solve=solve, epoch=1)
    assert message is not None
    assert answer.verdict == "allocated"
    return apply(snapshot, message, sequence=sequence)


def peer(nodes: int, seed: int, *, limit_s: float) -> Row:
    """Give the batch of `same` to the direct model alone."""
    snapshot, free = same_kinds.cluster(nodes, seed)
    snapshot = submitted(snapshot, same_kinds.full_demand(free, seed))
    with SelectorEvaluator() as evaluator:
        problem = Decider(evaluator).problem(snapshot)
    result = direct_alone(problem, limit_s)
    return {
        "nodes": nodes,
        "gangs": len(problem.gangs),
        "pods": sum(gang.pods for gang in problem.gangs),
        "status": f"{result.status} (direct model, {limit_s:g} s)",
        "value": result.value,
        "bound": result.bound,
        "gap %": gap_percent(result.value, result.bound),
        "solve s": result.seconds,
        "peak MiB": peak_mib(),
        "models": 1,
        "variables": result.variables,
    }


def tasks(family: str, size: str, nodes: tuple[int, ...], seed: int) -> Iterator[Task]:
    """List the rows of a family."""
    sizes = nodes or SIZES[family][size]
    match family:
        case "same":
            yield from (partial(same, count, seed) for count in sizes)
            peers = [count for count in PEER_NODES[size] if count in sizes]
            limit_s = PEER_S[size]
            yield from (partial(peer, n, seed, limit_s=limit_s) for n in peers)
        case "mixed":
            yield from (partial(mixed, count, seed) for count in sizes)
        case "none":
            for known in (NOTHING_READ, NODES_READ):
                yield from (partial(none, count, seed, known=known) for count in sizes)
        case _:
            steps = STEPS[size]
            yield from (partial(one, count, seed, steps=steps) for count in sizes)


def alone(task: Task) -> Row:
    """Run a task in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(task).result()


def main() -> None:
    """Measure the families asked for, each in a table of its own."""
    reading = parser(__doc__ or "")
    reading.add_argument("--family", nargs="+", choices=SIZES, default=list(SIZES))
    reading.add_argument("--nodes", nargs="+", type=int, default=[])
    options = reading.parse_args()
    rows: list[Row] = []
    for family in options.family:
        chosen = tasks(family, options.size, tuple(options.nodes), options.seed)
        family_rows = [{"family": family, **alone(task)} for task in chosen]
        print_table(family_rows)
        rows.extend(family_rows)
    write("scale", options, rows)


if __name__ == "__main__":
    main()
