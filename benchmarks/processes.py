"""Who used the processors: each process of a benchmark, and everybody else.

Read from /proc, so that a table says what limited it and how busy the machine was with
other things. A process is counted with the children that it has or had.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from benchmarks.report import Row
from tests.lab.cluster import Stack
from tests.lab.controlplane.server import ControlPlane

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)
"""Columns of /proc/stat: idle, and waiting for a disk."""
_COUNTED = 8
"""Its columns up to `steal`; guests are counted in them already."""


class Usage(Struct, frozen=True):
    """Seconds of processor time up to a moment."""

    at_s: float
    busy_s: float
    """Of all processors."""
    by_name: dict[str, float]
    pids: Mapping[str, int]


def processes_of(plane: ControlPlane, stack: Stack | None = None) -> dict[str, int]:
    """Name the processes of a benchmark; its own is `benchmark`."""
    pids = {"benchmark": os.getpid()}
    pids |= {
        name: program.pid
        for name, program in plane.programs.items()
        if program.pid is not None
    }
    if stack is not None:
        pids |= {name: process.pid for name, process in stack.processes.items()}
        if stack.nats.pid is not None:
            pids["nats-server"] = stack.nats.pid
    return pids


def usage(pids: Mapping[str, int]) -> Usage:
    """Read what was used until now."""
    of_pid, parents = _all_processes()
    by_name = dict.fromkeys(pids, 0.0)
    names = {pid: name for name, pid in pids.items()}
    for pid, seconds in of_pid.items():
        owner = pid
        while owner not in names and owner in parents:
            owner = parents[owner]
        if owner in names:
            by_name[names[owner]] += seconds
    fields = [int(text) for text in _first_line().split()[1 : 1 + _COUNTED]]
    busy = sum(fields) - sum(fields[index] for index in _IDLE)
    return Usage(time.time(), busy / _TICKS, by_name, pids)


def used(before: Usage, after: Usage) -> Row:
    """Give the seconds of each process, and how many processors others had."""
    ours = {
        name: after.by_name[name] - before.by_name.get(name, 0.0)
        for name in after.by_name
    }
    others = after.busy_s - before.busy_s - sum(ours.values())
    return {**ours, "others had": max(0.0, others) / (after.at_s - before.at_s)}


def _first_line() -> str:
    with Path("/proc/stat").open(encoding="ascii") as file:
        return file.readline()


def _all_processes() -> tuple[dict[int, float], dict[int, int]]:
    """Give the seconds of each process with its ended children, and its parent."""
    seconds, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        seconds[pid] = sum(map(int, fields[11:15])) / _TICKS
    return seconds, parents
