"""Gangs with rules across their pods: found, proven, and how long it takes.

    python -m benchmarks.solver.topology [--family NAME ...] [--size full]

groups:  one gang on all nodes, three levels Required, in groups of 8.
idle:    one gang of 8 in one rack, again and again, on a cluster without pods.
scarce:  1.3 times what there is, half of the gangs in one rack or block.
uneven:  the same with pods of 3 and 6 devices beside those of 1, 2, 4 and 8.
filled:  gangs bound to racks that fill 95 % of them by construction.
rails:   gangs bound to one rail each that fill 95 % of all by construction.
aligned: pods with a GPU and a NIC, in two claims, on one PCIe root.

`first fit` is what the first domain and the first nodes that will do give out. The
first answer of each row is cold, `CPU` what it cost this process; `again` are those
after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.report import Row, parser, percentile, report
from benchmarks.solver.full_path import Decider
from benchmarks.solver.scale import answer_of, submitted
from benchmarks.worlds import topology
from benchmarks.worlds.topology import World
from solver.cel.evaluator import SelectorEvaluator

Family = Callable[[int, int], World]
FAMILIES: dict[str, Family] = {
    "groups": lambda size, _: topology.groups(size),
    "idle": lambda size, _: topology.idle(size),
    "scarce": topology.scarce,
    "uneven": topology.uneven,
    "filled": topology.filled,
    "rails": topology.rails,
    "aligned": lambda size, _: topology.aligned(size),
}
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "groups": {"small": (128,), "full": (512,)},
    "idle": {"small": (256,), "full": (1_523,)},
    "scarce": {"small": (128,), "full": (1_523, 10_000)},
    "uneven": {"small": (128,), "full": (1_523,)},
    "filled": {"small": (128,), "full": (1_024, 7_200)},
    "rails": {"small": (64,), "full": (256, 1_024)},
    "aligned": {"small": (64,), "full": (64,)},
}
"""Nodes of the rows of each family."""
AGAIN = {"idle": 50, "aligned": 5, "groups": 3}
"""Answers after the first."""


def decided_row(name: str, world: World, nodes: int) -> Row:
    """Decide all gangs of a world, some times over."""
    snapshot, spent = submitted(world.snapshot, world.gangs), list[float]()
    with SelectorEvaluator() as evaluator:
        decider = Decider(evaluator)
        began_s = time.process_time()
        decided = decider.decide(snapshot)
        cpu_s = time.process_time() - began_s
        spent.append(decided.problem_s + decided.solve_s)
        for _ in range(AGAIN.get(name, 0)):
            decided = decider.decide(snapshot)
            spent.append(decided.problem_s + decided.solve_s)
    row = {
        "family": name,
        "nodes": nodes,
        **answer_of(decided),
        "first fit": world.first_fit,
        "engine": decided.decision.statistics.engine,
        "work": decided.decision.statistics.work,
        "first ms": spent[0] * 1e3,
        "CPU ms": cpu_s * 1e3,
    }
    if spent[1:]:
        row |= {
            "again p50 ms": percentile(spent[1:], 0.5) * 1e3,
            "again p99 ms": percentile(spent[1:], 0.99) * 1e3,
        }
    return row


def main() -> None:
    """Print a row for each family and size."""
    reading = parser(__doc__ or "")
    reading.add_argument("--family", action="append", choices=sorted(FAMILIES))
    options = reading.parse_args()
    rows = [
        decided_row(name, FAMILIES[name](size, options.seed), size)
        for name in options.family or FAMILIES
        for size in SIZES[name][options.size]
    ]
    report("gang_rules", options, rows)


if __name__ == "__main__":
    main()
