"""Virtual time: who runs when and where, checked second by second."""

from __future__ import annotations

import pytest

from moorings.deciding import Judged
from moorings.simulate.course import Course, Policy, key_of
from moorings.simulate.job import Job
from solver.timeline.patience import NEVER
from tests.builders.simulated import draw_jobs, evaluate_rows, make_cluster, make_job
from tests.oracles.brute_time import Device, Taken

NODES, GPUS = 3, 4


def run(jobs: list[Job], patience_s: int) -> tuple[Course, Taken]:
    """Let a course happen; no device is used twice at any second."""
    policy = Policy(name="tried", patience_s=patience_s)
    course = Course(make_cluster(NODES, GPUS), jobs, policy, Judged(evaluate_rows))
    taken, seen = Taken([]), set[str]()
    for now_s in course.run():
        for record in course.snapshot.gangs.values():
            if record.placed is None or record.uid in seen:
                continue
            seen.add(record.uid)
            stay = course.stays[record.key]
            used: list[Device] = [
                (result.pool, result.device)
                for pod in record.placed.members
                for claim in pod.claims
                for result in claim.allocation.devices.results
            ]
            assert stay.started_s == now_s
            assert len(used) == stay.job.devices
            taken.take(used, now_s, now_s + stay.job.runs_s)
    return course, taken


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("patience_s", [NEVER, 0, 100])
def test_no_device_is_used_twice_and_promises_are_kept(
    seed: int, patience_s: int
) -> None:
    jobs = draw_jobs(seed, 40, NODES * GPUS)
    course, taken = run(jobs, patience_s)
    stays = course.stays.values()
    for stay in stays:
        assert stay.started_s is not None
        assert stay.started_s >= stay.job.at_s
        assert stay.ended_s == stay.started_s + stay.job.runs_s
        assert stay.promised_s is None or stay.started_s <= stay.promised_s
        assert not stay.moved_later
    assert sum(map(len, taken.times.values())) == sum(job.devices for job in jobs)
    made = sum(stay.promised_s is not None for stay in stays)
    assert (made == 0) or patience_s != NEVER
    again, _ = run(jobs, patience_s)
    assert again.stays == course.stays


def test_a_large_job_is_promised_a_start_and_small_ones_pass_before_it() -> None:
    jobs = [
        make_job("runs", 8, 0, 100, 100),
        make_job("large", 12, 1, 50, 50),
        make_job("short", 4, 2, 90, 98),
        make_job("long", 4, 3, 90, 99),
    ]
    course, _ = run(jobs, 0)
    starts = {stay.job.name: stay.started_s for stay in course.stays.values()}
    assert starts == {"runs": 0, "large": 100, "short": 2, "long": 150}
    assert course.stays[key_of(jobs[1])].promised_s == 100
    assert course.ended == 4


def test_what_ended_early_moves_a_promise_earlier() -> None:
    jobs = [
        make_job("runs", 8, 0, 50, 100),
        make_job("other", 4, 0, 30, 60),
        make_job("large", 12, 1, 50, 50),
        make_job("long", 4, 31, 60, 69),
    ]
    course, _ = run(jobs, 0)
    starts = {stay.job.name: stay.started_s for stay in course.stays.values()}
    assert starts["large"] == 91
    assert course.stays[key_of(jobs[2])].promised_s == 100


def test_who_overruns_moves_a_promise_for_that_reason() -> None:
    jobs = [make_job("runs", 12, 0, 100, 50), make_job("waits", 12, 1, 10, 10)]
    jobs.append(make_job("asks", 1, 60, 1, 1))
    course, _ = run(jobs, 0)
    stay = course.stays[key_of(jobs[1])]
    assert (stay.promised_s, stay.started_s) == (50, 100)
    assert stay.moved_later
