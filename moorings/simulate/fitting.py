"""Which jobs no empty fleet could hold, so that nobody waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from moorings.simulate.course import Course, Evaluate, Policy, key_of
from moorings.simulate.job import Job
from moorings.simulate.world import World
from solver.timeline.keeper import NEVER

Shape = tuple[int, int]
"""Devices in all, and of each pod."""


def find_hopeless(
    world: World, jobs: Sequence[Job], evaluate: Evaluate
) -> tuple[str, ...]:
    """Name the jobs that do not fit on the empty fleet, each shape tried once."""
    fits: dict[Shape, bool] = {}
    for job in jobs:
        shape = (job.devices, job.each)
        if shape not in fits:
            fits[shape] = _fits_alone(world, job, evaluate)
    return tuple(job.name for job in jobs if not fits[job.devices, job.each])


def _fits_alone(world: World, job: Job, evaluate: Evaluate) -> bool:
    if job.devices > world.devices:
        return False
    course = Course(world, [job], Policy(name="", patience_s=NEVER), evaluate)
    for _ in course.run():
        if course.stays[key_of(job)].started_s is not None:
            return True
    return False
