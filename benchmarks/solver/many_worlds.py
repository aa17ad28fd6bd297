"""Many worlds: how far answers are from their bounds, over families and seeds.

    python -m benchmarks.solver.many_worlds [--family NAME ...] [--nodes N ...]
        [--seeds K] [--seed FIRST] [--json FILE]
    python -m benchmarks.solver.many_worlds --kept [--json FILE]

A row is a family at a size, over K seeds from FIRST on: how many answers were proven
best (of the weight of the gangs that are in), the gap to the bound, and the solver's
work. Work is deterministic; seconds are the machine's: `solve s` by the clock,
`solve cpu s` what the process worked on the solve, `cpu s` what it worked in all, world
included. The worst instance is named by its seed:
`--family NAME --nodes N --seed SEED --seeds 1` decides it again. `--kept` decides the
worst instances that were ever found.

The JSON has a row for each instance.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from msgspec import Struct

from benchmarks.report import Row, parser, print_table, write
from benchmarks.solver.full_path import Decider, cpu_seconds
from benchmarks.worlds.many_worlds import FAMILIES, KEPT_CASES, draw_world
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.snapshot.snapshot import apply

SEEDS = {"small": 1, "full": 20}
NODES = {"small": (100,), "full": (100, 300, 2000)}


class Instance(Struct, frozen=True, kw_only=True):
    """One world that was decided."""

    family: str
    nodes: int
    seed: int
    gangs: int
    value: int
    bound: int
    engine: str
    work: float
    models: int
    solve_s: float
    solve_cpu_s: float
    cpu_s: float

    @property
    def gap(self) -> float:
        """By how many percent of the bound the answer may be short."""
        return 100 * (self.bound - self.value) / self.bound if self.bound else 0.0


def decide_instance(
    evaluator: SelectorEvaluator, family: str, nodes: int, seed: int
) -> Instance:
    """Draw a world and decide it."""
    started = cpu_seconds()
    snapshot, submissions = draw_world(FAMILIES[family], nodes, seed)
    for age, message in enumerate(submissions, start=1):
        snapshot = apply(snapshot, message, sequence=age)
    decided = Decider(evaluator).decide(snapshot)
    value, bound = first_tier(decided.decision)
    return Instance(
        family=family,
        nodes=nodes,
        seed=seed,
        gangs=len(decided.problem.gangs),
        value=value,
        bound=bound,
        engine=decided.decision.statistics.engine,
        work=decided.decision.statistics.work,
        models=decided.decision.statistics.models,
        solve_s=decided.solve_s,
        solve_cpu_s=decided.solve_cpu_s,
        cpu_s=cpu_seconds() - started,
    )


def first_tier(decision: Decision) -> tuple[int, int]:
    """Read the weight that is in, and the bound above it."""
    first = decision.objective[0]
    assert first.bound is not None
    return first.value, first.bound


def summarize(instances: Sequence[Instance]) -> Row:
    """Summarize the instances of one family at one size."""
    worst = max(instances, key=lambda instance: (instance.gap, instance.work))

    def spread(name: str, of: Callable[[Instance], float]) -> dict[str, float]:
        values = list(map(of, instances))
        return {f"{name} median": statistics.median(values), f"max {name}": max(values)}

    return {
        "family": worst.family,
        "nodes": worst.nodes,
        "seeds": len(instances),
        "proven": sum(instance.value == instance.bound for instance in instances),
        **spread("gap %", lambda instance: instance.gap),
        **spread("work", lambda instance: instance.work),
        **spread("solve s", lambda instance: instance.solve_s),
        **spread("solve cpu s", lambda instance: instance.solve_cpu_s),
        **spread("cpu s", lambda instance: instance.cpu_s),
        "worst seed": worst.seed,
        "its value": worst.value,
        "its bound": worst.bound,
    }


def main() -> None:
    """Decide the worlds that are asked for."""
    reading = parser(__doc__ or "")
    reading.add_argument("--family", nargs="+", choices=FAMILIES, default=[*FAMILIES])
    reading.add_argument("--nodes", nargs="+", type=int, default=[])
    reading.add_argument("--seeds", type=int, default=0)
    reading.add_argument("--kept", action="store_true")
    options = reading.parse_args()
    sizes = options.nodes or NODES[options.size]
    seeds = range(options.seed, options.seed + (options.seeds or SEEDS[options.size]))
    rows = [
        [(family, n, seed) for seed in seeds]
        for family in options.family
        for n in sizes
    ]
    if options.kept:
        rows = [[case] for case in KEPT_CASES]
    with SelectorEvaluator() as evaluator:
        decided = [[decide_instance(evaluator, *case) for case in row] for row in rows]
    print_table([summarize(row) for row in decided])
    instances = [to_row(instance) for row in decided for instance in row]
    write("many_worlds", options, instances)


def to_row(instance: Instance) -> Row:
    """List what is known of an instance."""
    return {
        "family": instance.family,
        "nodes": instance.nodes,
        "seed": instance.seed,
        "gangs": instance.gangs,
        "value": instance.value,
        "bound": instance.bound,
        "gap %": instance.gap,
        "engine": instance.engine,
        "work": instance.work,
        "models": instance.models,
        "solve s": instance.solve_s,
        "solve cpu s": instance.solve_cpu_s,
        "cpu s": instance.cpu_s,
    }


if __name__ == "__main__":
    main()
