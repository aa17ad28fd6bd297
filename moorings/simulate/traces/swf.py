"""Traces in the Standard Workload Format, as the Parallel Workloads Archive has them.

A line is a job of 18 numbers; -1 is unknown, and lines that begin with `;` are
comments.

Source: Feitelson, "The Standard Workload Format", version 2.2.
"""

from __future__ import annotations

from pathlib import Path

from moorings.simulate.job import Job
from moorings.simulate.traces.trace import (
    MOST_SECONDS,
    SkippedJob,
    Trace,
    check_unique,
    make_trace,
    read_lines,
    refuse,
)

FIELDS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "number of allocated processors",
    "average CPU time used",
    "used memory",
    "requested number of processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
NUMBER, SUBMITTED, RUNS, ALLOCATED, REQUESTED, LIMIT = 0, 1, 3, 4, 7, 8
QUEUES = {"queue": 14, "partition": 15, "user": 11}
"""What a queue is called by, and its field; the first that is known counts."""
MOST_PROCESSORS = 10_000_000


def read_swf(file: Path) -> Trace:
    """Read a trace: processors become devices, the requested time is the duration.

    Raises:
        BadInputError: the file cannot be read, or a line breaks the format.
    """
    jobs, left_out, lines = list[Job](), list[SkippedJob](), dict[str, int]()
    for number, line in read_lines(file):
        text = line.strip()
        if not text or text.startswith(";"):
            continue
        values = _read_values(file, number, text)
        name = f"job-{values[NUMBER]}"
        check_unique(file, number, name, lines)
        devices = values[REQUESTED] if values[REQUESTED] > 0 else values[ALLOCATED]
        if devices < 1 or values[RUNS] < 0:
            unknown = "many processors it wants" if devices < 1 else "long it ran"
            reason = f"nobody knows how {unknown}"
            left_out.append(SkippedJob(name=name, reason=reason))
            continue
        job = Job(
            name=name,
            queue=_name_queue(values),
            at_s=values[SUBMITTED],
            runs_s=max(values[RUNS], 1),
            limit_s=values[LIMIT] if values[LIMIT] > 0 else None,
            devices=devices,
        )
        jobs.append(job)
    return make_trace(jobs, left_out)


def _read_values(file: Path, line: int, text: str) -> list[int]:
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise refuse(file, line, f"has {len(parts)} fields, and a job has 18")
    return [_read_value(file, line, i, part) for i, part in enumerate(parts)]


def _read_value(file: Path, line: int, index: int, part: str) -> int:
    field = f"field {index + 1} ({FIELDS[index]})"
    try:
        value = int(float(part))
    except (ValueError, OverflowError) as error:
        raise refuse(file, line, f"{field} is {part[:40]!r}, not a number") from error
    most = {ALLOCATED: MOST_PROCESSORS, REQUESTED: MOST_PROCESSORS}.get(index)
    if index in {RUNS, LIMIT, SUBMITTED}:
        most = MOST_SECONDS * (100 if index == SUBMITTED else 1)
    if value < -1 and index in {NUMBER, SUBMITTED, RUNS, ALLOCATED, REQUESTED, LIMIT}:
        raise refuse(file, line, f"{field} is {part[:40]}, and at least -1")
    if most is not None and value > most:
        raise refuse(file, line, f"{field} is {part[:40]}, and at most {most}")
    return value


def _name_queue(values: list[int]) -> str:
    for name, index in QUEUES.items():
        if values[index] >= 0:
            return f"{name}-{values[index]}"
    return "unknown"
