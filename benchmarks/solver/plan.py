"""`moorings plan` on a large cluster: how much of its time is not the solve.

    python -m benchmarks.solver.plan [--size full] [--world NAME ...] [--nodes N ...]

Objects are written as kubectl prints them (`--format json` or `yaml`), then the command
is run as anybody would. Seconds are of the processor, of the command and all that it
starts, because a solve on a shared machine says little by the clock; `solve s` is by
the clock, and so is `all s`, which begins with the command. `all / solve` is of these.

same:   equal nodes with 8 GPUs, partly used; gangs for 1.3 times what is free.
mixed:  8 shapes of node, each used differently; gangs of 30 kinds of pod.
pods:   the nodes of `mixed`; pods of their gangs as pods, none of which needs another.
sparse: the nodes of `same`; a gang for one in a hundred nodes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.report import Row, parser, report
from benchmarks.worlds import mixed_nodes, mixed_pods, same_kinds
from benchmarks.worlds.manifests import (
    gang_object,
    objects_of,
    pod_objects,
    write_list,
)
from benchmarks.worlds.objects import Observation

NODES = {"small": (300,), "full": (10_000,)}
Objects = Iterator[Any]
_RUN = """
import json, os, subprocess, sys
with open(sys.argv[1], "wb") as file:
    process = subprocess.Popen(sys.argv[2:], stdout=file)
    _, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""
"""Runs a command. Linux counts what the parent of a process had to the peak of that
process, so the parent is this, which has next to nothing."""


def same(nodes: int, seed: int) -> Objects:
    """Make equal nodes and gangs that ask for 1.3 times what is free."""
    cluster, free = _list_objects(same_kinds.observe(nodes, seed))
    return chain(cluster, map(gang_object, same_kinds.full_demand(free, seed)))


def mixed(nodes: int, seed: int) -> Objects:
    """Make different nodes and gangs that ask for 1.3 times what is free."""
    cluster, free = _list_objects(mixed_nodes.observe(nodes, seed))
    return chain(cluster, map(gang_object, mixed_pods.full_demand(free, seed)))


def pods(nodes: int, seed: int) -> Objects:
    """Make different nodes and pods."""
    cluster, free = _list_objects(mixed_nodes.observe(nodes, seed))
    gangs = mixed_pods.full_demand(free, seed)
    return chain(cluster, chain.from_iterable(map(pod_objects, gangs)))


def sparse(nodes: int, seed: int) -> Objects:
    """Make equal nodes and few gangs."""
    cluster, _ = _list_objects(same_kinds.observe(nodes, seed))
    return chain(cluster, map(gang_object, same_kinds.full_demand(nodes // 100, seed)))


def _list_objects(observations: Iterator[Observation]) -> tuple[list[Any], int]:
    objects, free = list[Any](), 0
    for message, unused in observations:
        objects += objects_of(message)
        free += unused
    return objects, free


WORLDS: dict[str, Callable[[int, int], Objects]] = {
    "same": same,
    "mixed": mixed,
    "pods": pods,
    "sparse": sparse,
}


def measure(path: Path) -> Row:
    """Run the command on a file, in a process that has no other children."""
    program = str(Path(sys.executable).with_name("moorings"))
    command = [program, "plan", "-f", str(path), "-o", "json"]
    output = path.with_suffix(".plan")
    started = time.perf_counter()
    between = [sys.executable, "-c", _RUN, str(output), *command]
    said = subprocess.run(between, stdout=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - started
    cpu_seconds, peak_kib = json.loads(said.stdout)
    plan = json.loads(output.read_text(encoding="utf-8"))
    stats = plan["stats"]
    return {
        "MB in": path.stat().st_size / 1e6,
        "status": plan["status"],
        "gangs": len(plan["gangs"]),
        "claims": len(plan["claims"]),
        "solve s": stats["solveSeconds"],
        "all s": seconds,
        "all / solve": seconds / stats["solveSeconds"],
        "cpu s": cpu_seconds,
        "peak MiB": peak_kib // 1024,
    }


def main() -> None:
    """Measure each world at each size."""
    reading = parser(__doc__ or "")
    reading.add_argument("--world", nargs="+", choices=WORLDS, default=list(WORLDS))
    reading.add_argument("--nodes", nargs="+", type=int, default=[])
    reading.add_argument("--format", choices=("json", "yaml"), default="json")
    options = reading.parse_args()
    rows: list[Row] = []
    for world in options.world:
        for nodes in options.nodes or NODES[options.size]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"cluster.{options.format}"
                write_list(path, WORLDS[world](nodes, options.seed))
                rows.append({"world": world, "nodes": nodes, **measure(path)})
    report("plan", options, rows)


if __name__ == "__main__":
    main()
