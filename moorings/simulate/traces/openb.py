"""The pod list of Alibaba's GPU-sharing trace of 2023 (openb), as it is published.

A pod is a job of one pod; a share of a GPU counts as a whole one, and which models
would do is not read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from moorings.errors import BadInputError
from moorings.simulate.job import Job
from moorings.simulate.traces.trace import (
    MOST_SECONDS,
    SkippedJob,
    Trace,
    check_unique,
    make_name,
    make_trace,
    read_lines,
    refuse,
)

COLUMNS = (
    "name",
    "num_gpu",
    "qos",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
MOST_GPUS = 1024


def read_openb(file: Path) -> Trace:
    """Read a pod list.

    Raises:
        BadInputError: the file cannot be read, or a line breaks the format.
    """
    jobs, left_out, lines = list[Job](), list[SkippedJob](), dict[str, int]()
    for number, row in _read_rows(file):
        name = make_name(row["name"])
        check_unique(file, number, name, lines)
        gpus = _read_number(file, number, row, "num_gpu")
        came_s = _read_number(file, number, row, "creation_time")
        began_s = _read_number(file, number, row, "scheduled_time")
        ended_s = _read_number(file, number, row, "deletion_time")
        if gpus is not None and gpus > MOST_GPUS:
            raise refuse(file, number, f"num_gpu is {gpus}, and at most {MOST_GPUS}")
        if not gpus:
            left_out.append(SkippedJob(name=name, reason="it asks for no GPU"))
        elif came_s is None or began_s is None or ended_s is None:
            reason = "nobody knows when it came, began or ended"
            left_out.append(SkippedJob(name=name, reason=reason))
        else:
            job = Job(
                name=name,
                queue=make_name(row["qos"]),
                at_s=came_s,
                runs_s=min(max(ended_s - began_s, 1), MOST_SECONDS),
                limit_s=None,
                devices=gpus,
                each=gpus,
            )
            jobs.append(job)
    return make_trace(jobs, left_out)


def _read_rows(file: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    lines = read_lines(file)
    _, first = next(lines, (0, ""))
    header = next(csv.reader([first]), [])
    if missing := [column for column in COLUMNS if column not in header]:
        raise refuse(file, 1, f"is no header of openb: {missing[0]} is missing")
    for number, line in lines:
        if not line.strip():
            continue
        try:
            cells = next(csv.reader([line], strict=True))
        except csv.Error as error:
            raise refuse(file, number, f"is not CSV: {error}") from error
        if len(cells) != len(header):
            have = f"has {len(cells)} columns, and the header has {len(header)}"
            raise refuse(file, number, have)
        yield number, dict(zip(header, cells, strict=True))


def _read_number(
    file: Path, line: int, row: Mapping[str, str], column: str
) -> int | None:
    """Read a number that is not negative; None: there is none.

    Raises:
        BadInputError: it is something else.
    """
    text = row[column].strip()
    if not text:
        return None
    try:
        value = int(float(text))
    except (ValueError, OverflowError):
        value = -1
    if value < 0:
        error: BadInputError = refuse(
            file, line, f"{column} is {text[:40]!r}, not a number of 0 or more"
        )
        raise error
    return value
