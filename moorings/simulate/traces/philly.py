"""The job log of Microsoft's Philly trace of 2017, as it is published: one JSON array.

A job runs as long as all of its attempts together, with the most GPUs of any of them.
How long it may run was not recorded.

Source: github.com/msr-fiddle/philly-traces, cluster_job_log.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from moorings.errors import BadInputError
from moorings.simulate.job import Job
from moorings.simulate.traces.trace import (
    SkippedJob,
    Trace,
    make_name,
    make_trace,
    read_text,
)

UNKNOWN = ("", "None")


class _Server(Struct):
    gpus: list[str] = []


class _Attempt(Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Server] = []


class _Entry(Struct):
    jobid: str
    submitted_time: str
    vc: str = ""
    attempts: list[_Attempt] = []


def read_philly(file: Path) -> Trace:
    """Read a job log.

    Raises:
        BadInputError: the file cannot be read, or is no job log.
    """
    text = read_text(file)
    try:
        entries = msgspec.json.decode(text, type=list[_Entry])
    except msgspec.DecodeError as error:
        raise BadInputError(str(file), f"is no job log of Philly: {error}") from error
    jobs, left_out, seen = list[Job](), list[SkippedJob](), dict[str, int]()
    for number, entry in enumerate(entries):
        where = f"{file}: [{number}]"
        name = make_name(entry.jobid)
        if (other := seen.setdefault(name, number)) != number:
            raise BadInputError(where, f"has job {name} again, which is [{other}]")
        made = _make_job(where, entry, name)
        if isinstance(made, Job):
            jobs.append(made)
        else:
            left_out.append(made)
    return make_trace(jobs, left_out)


def _make_job(where: str, entry: _Entry, name: str) -> Job | SkippedJob:
    submitted_s = _read_time(where, "submitted_time", entry.submitted_time)
    runs_s = devices = 0
    for number, attempt in enumerate(entry.attempts):
        at = f"attempts[{number}]"
        start_s = _read_time(where, f"{at}.start_time", attempt.start_time)
        end_s = _read_time(where, f"{at}.end_time", attempt.end_time)
        if start_s is not None and end_s is not None:
            runs_s += max(end_s - start_s, 0)
        devices = max(devices, sum(len(server.gpus) for server in attempt.detail))
    if not devices:
        return SkippedJob(name=name, reason="it never had a GPU")
    if submitted_s is None or not runs_s:
        return SkippedJob(
            name=name, reason="nobody knows when it came, or how long it ran"
        )
    return Job(
        name=name,
        queue=make_name(entry.vc),
        at_s=submitted_s,
        runs_s=runs_s,
        limit_s=None,
        devices=devices,
    )


def _read_time(where: str, field: str, text: str | None) -> int | None:
    if text is None or text in UNKNOWN:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        reason = f"{field} is {text[:40]!r}, not a time such as 2017-10-09 07:02:36"
        raise BadInputError(where, reason) from error
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return moment.toordinal() * 86_400 + seconds
