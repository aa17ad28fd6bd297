"""Waits, utilisation and promises of a course, by hand."""

from __future__ import annotations

from moorings.simulate.course import Stay
from moorings.simulate.measure import list_largest, measure
from tests.builders.simulated import make_job


def test_a_course_is_summed_up() -> None:
    stays = [
        Stay(job=make_job("a", 4, 0, 100), started_s=0),
        Stay(job=make_job("b", 8, 10, 50), started_s=100, promised_s=100),
        Stay(job=make_job("c", 1, 200, 10), started_s=260, promised_s=250),
        Stay(job=make_job("d", 1, 200, 10), started_s=None, promised_s=300),
    ]
    made = measure("tried", stays, devices=8, now_s=280, left_out=["z"])
    assert (made.jobs, made.started, made.left_out) == (4, 3, ("z",))
    assert made.utilisation == 0.5  # 4 x 100 and 8 x 50 of 8 x 200
    everybody, largest, *others = made.waits
    assert (everybody.mean_s, everybody.median_s, everybody.most_s) == (50.0, 60.0, 90)
    assert (largest.jobs, largest.mean_s) == (1, 90.0)
    assert [each.of for each in others] == [
        "1 device",
        "3 to 4 devices",
        "5 to 8 devices",
        "queue team",
    ]
    promises = made.promises
    assert (promises.made, promises.kept, promises.broken, promises.open) == (
        3,
        1,
        1,
        1,
    )
    assert made.timeline[0].used == 4
    assert max(point.used for point in made.timeline) == 8
    assert made.timeline[-1].wanted == 1


def test_the_largest_of_equals_came_first() -> None:
    stays = [Stay(job=make_job(str(n), 2, n)) for n in range(150)]
    assert [stay.job.name for stay in list_largest(stays)] == ["0", "1"]
    assert measure("none", [], devices=8, now_s=0).utilisation == 0.0
