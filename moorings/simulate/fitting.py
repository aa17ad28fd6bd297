"""Which jobs no empty fleet could hold, so that nobody waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from moorings.deciding import Judged
from moorings.simulate.cluster import SimulatedCluster
from moorings.simulate.course import Course, Policy, key_of
from moorings.simulate.job import Job
from solver.timeline.patience import NEVER

Shape = tuple[int, int]
"""Devices in all, and of each pod."""


def find_hopeless(
    cluster: SimulatedCluster, jobs: Sequence[Job], judged: Judged
) -> tuple[str, ...]:
    """Name the jobs that do not fit on the empty fleet, each shape tried once."""
    fits: dict[Shape, bool] = {}
    for job in jobs:
        shape = (job.devices, job.each)
        if shape not in fits:
            fits[shape] = _fits_alone(cluster, job, judged)
    return tuple(job.name for job in jobs if not fits[job.devices, job.each])


def _fits_alone(cluster: SimulatedCluster, job: Job, judged: Judged) -> bool:
    if job.devices > cluster.devices:
        return False
    course = Course(cluster, [job], Policy(name="", patience_s=NEVER), judged)
    stay = course.stays[key_of(job)]
    return any(stay.started_s is not None for _ in course.run())
