"""`moorings plan` on ordinary clusters, beside a greedy peer, judged by neither.

    python -m benchmarks.solver.worlds [--size full] [--family NAME ...] [--nodes N ...]
        [--seed FIRST] [--seeds K] [--cpu-limit S] [--json FILE]

A row is a world: a family at a size, by seed. The command runs as anybody would run it,
and a judge in plain Python that shares no code with the product carries the plan out:
`wrong` counts the rules that are broken. `value` is the weight of the gangs that are
in, as the judge adds it up; `bound` is what the plan says that no answer passes; `gap`
is what lies between them. `greedy` is the better of first fit by age and best fit, most
worth first, in plain Python. `cpu s` is the processor's time of the whole command, and
`peak MiB` its largest process. A run that needs more CPU than the limit is ended, and
its row says `none`.

helios:    jobs with a heavy tail on nodes of 8 GPUs and 8 NICs.
nvl72:     jobs that need a rack, or groups of 16 nodes in a rack.
mig:       parts of cards, with counters.
openb:     shares of cards by capacity, or whole cards, of a published trace.
cputight:  odd requests of CPU and memory, which decide.
twomember: unlike members in one gang, worth what nobody can guess.
selectors: as many different expressions as devices.
huge:      one gang in 64 groups, where 51 racks can hold a group: no, by counting.
squeezed:  the same worlds with less CPU and memory on every node.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.judge.cluster import Cluster
from benchmarks.judge.greedy import Greedy
from benchmarks.judge.verdict import Verdict, judge_plan
from benchmarks.report import Row, parser, print_table, write
from benchmarks.worlds.ordinary.families import FAMILIES, draw_world

CPU_LIMIT = 120
_RUN = """
import json, os, resource, subprocess, sys
limit = int(sys.argv[1])
with open(sys.argv[2], "wb") as file:
    process = subprocess.Popen(
        sys.argv[3:],
        stdout=file,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )
    _, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""
"""Runs a command with a limit. Linux counts what the parent of a process had to the
peak of that process, so the parent is this, which has next to nothing."""


class Run(Struct, frozen=True):
    """What a command wrote, and what it took."""

    plan: Any
    """None: it was ended before it wrote any."""
    cpu_s: float
    clock_s: float
    peak_mib: int


def run_plan(objects: list[Any], cpu_limit: int = CPU_LIMIT) -> Run:
    """Run `moorings plan` on objects, in a process that has no other children."""
    program = str(Path(sys.executable).with_name("moorings"))
    with tempfile.TemporaryDirectory() as folder:
        world, output = Path(folder) / "world.json", Path(folder) / "plan.json"
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        world.write_text(json.dumps(items), encoding="utf-8")
        command = [program, "plan", "-f", str(world), "-o", "json"]
        between = [sys.executable, "-c", _RUN, str(cpu_limit), str(output), *command]
        started = time.perf_counter()
        said = subprocess.run(between, stdout=subprocess.PIPE, check=True)
        clock_s = time.perf_counter() - started
        cpu_s, peak_kib = json.loads(said.stdout)
        text = output.read_text(encoding="utf-8")
    plan = json.loads(text) if text else None
    return Run(plan, cpu_s, clock_s, peak_kib // 1024)


def measure(family: str, nodes: int, seed: int, cpu_limit: int = CPU_LIMIT) -> Row:
    """Draw a world, decide it, and let the judge and the greedy peer look at it."""
    objects = draw_world(family, nodes, seed)
    floor = max(Greedy(Cluster(objects), best=best).run() for best in (False, True))
    run = run_plan(objects, cpu_limit)
    world = Cluster(objects)
    row: Row = {
        "family": family,
        "nodes": nodes,
        "seed": seed,
        "gangs": len(world.gangs),
    }
    cost: Row = {
        "greedy": floor,
        "cpu s": run.cpu_s,
        "clock s": run.clock_s,
        "peak MiB": run.peak_mib,
    }
    if run.plan is None:
        return {**row, "status": "none", **cost}
    return {**row, **_answer(run.plan, judge_plan(world, run.plan)), **cost}


def _answer(plan: Any, verdict: Verdict) -> Row:
    tiers = [tier for tier in plan["objective"] if tier["tier"] == "gangs"]
    bounds = [tier["bound"] for tier in tiers]
    answer: dict[str, str | float | int] = {
        "status": plan["status"],
        "engine": plan["stats"]["engine"],
        "in": verdict.gangs,
        "value": verdict.value,
        "wrong": sum(verdict.wrong.values()),
    }
    if verdict.wrong:
        answer["broken"] = ", ".join(sorted(verdict.wrong))
    if None not in bounds:
        bound = sum(bounds)
        answer["bound"] = bound
        answer["gap %"] = 100 * (bound - verdict.value) / bound if bound else 0.0
    return answer


COLUMNS = (
    "family",
    "nodes",
    "seed",
    "gangs",
    "in",
    "status",
    "value",
    "bound",
    "gap %",
    "greedy",
    "wrong",
    "cpu s",
    "peak MiB",
)
"""Of the table; the JSON has the others as well."""


def main() -> None:
    """Measure the worlds that are asked for; each row is shown once it is known."""
    reading = parser(__doc__ or "")
    reading.add_argument("--family", nargs="+", choices=FAMILIES, default=[*FAMILIES])
    reading.add_argument("--nodes", nargs="+", type=int, default=[])
    reading.add_argument("--seeds", type=int, default=1)
    reading.add_argument("--cpu-limit", type=int, default=CPU_LIMIT, metavar="S")
    options = reading.parse_args()
    rows: list[Row] = []
    for family, nodes, seed in _list_cases(options):
        rows.append(measure(family, nodes, seed, options.cpu_limit))
        print(f"{family} {nodes} {seed}: {rows[-1]['status']}", file=sys.stderr)
        write("worlds", options, rows)
    print_table([{column: row.get(column, "") for column in COLUMNS} for row in rows])


def _list_cases(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    for name in options.family:
        family = FAMILIES[name]
        usual = family.full if options.size == "full" else (family.small,)
        for nodes in options.nodes or usual:
            for seed in range(options.seed, options.seed + options.seeds):
                yield name, nodes, seed


if __name__ == "__main__":
    main()
