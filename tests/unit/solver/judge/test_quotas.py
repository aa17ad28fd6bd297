"""The judge counts what ClusterQueues and cohorts hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from solver.allocate import allocate
from solver.judge.rules import judge
from solver.problem.gangs import QueuePart
from solver.problem.problem import Problem, QuotaPart
from tests.builders import DEVICE_CLASS, devices, member_claim, request
from tests.builders.broken import Broken, gang_of, problem_with, rules_broken, world

TWO = gang_of(member_claim(request(count=2)))
WATCH = gang_of(member_claim(request(count=2, admin_access=True)))
ONE_MORE = gang_of(member_claim(request()), number=2)
QUEUE = QueuePart(
    name="q",
    flavors={"gpu": "f"},
    classes={DEVICE_CLASS: "gpu"},  # type: ignore[dict-item]  # a name
)


def quota(quota: int, used: int, **fields: Any) -> QuotaPart:
    about = {"name": "q", "flavor": "f", "resource": "gpu", **fields}
    return QuotaPart(quota=quota, used=used, **about)


def cohort(quota: int, used: int, name: str = "c", **fields: Any) -> QuotaPart:
    about = {"name": name, "flavor": "f", "resource": "gpu", **fields}
    return QuotaPart(quota=quota, used=used, is_cohort=True, **about)


def held_against(*quotas: QuotaPart, watches: bool = False) -> Broken:
    """Decide three devices, or two that are watched, and hold quotas against it."""
    gangs = (WATCH,) if watches else (TWO, ONE_MORE)
    made = problem_with(world(*devices(3), gangs=gangs))
    queued = tuple(structs.replace(gang, queue=QUEUE) for gang in made.gangs)
    asked = Problem(made.pages, queued, made.selectors, made.parameters, quotas=quotas)
    free = Problem(made.pages, queued, made.selectors, made.parameters)
    return asked, allocate(free)


BROKEN: dict[str, Callable[[], Broken]] = {
    "all": lambda: held_against(quota(2, 0)),
    "beside what it held": lambda: held_against(quota(64, 62)),
    "it was more": lambda: held_against(quota(1, 9)),
    "no quota of it": lambda: held_against(quota(9, 0, flavor="other")),
    "no more to borrow": lambda: held_against(
        quota(1, 0, parent="c", borrowing_limit=1), cohort(9, 0)
    ),
    "the cohort has none": lambda: held_against(quota(1, 0, parent="c"), cohort(9, 7)),
    "a cohort may not borrow": lambda: held_against(
        quota(0, 0, parent="c"),
        cohort(2, 0, parent="root", borrowing_limit=0),
        cohort(9, 0, "root"),
    ),
    "the root has none": lambda: held_against(
        quota(0, 0, parent="c"), cohort(2, 0, parent="root"), cohort(9, 7, "root")
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_more_than_a_queue_may_hold_is_named(name: str) -> None:
    """What it held before counts, and what all gangs of the batch get."""
    assert rules_broken(BROKEN[name]()) == {"quotaKept"}


def test_a_violation_has_the_queue_and_the_numbers() -> None:
    """Two of one gang and one of another, beside those held before."""
    (said,) = judge(*held_against(quota(64, 62)))
    assert said == "quotaKept: ClusterQueue q would hold 65 of 64 gpu in flavor f"


@pytest.mark.parametrize(
    "kept",
    [
        (quota(3, 0),),
        (quota(0, 0, parent="c"), cohort(3, 0)),
        (quota(1, 0, parent="c", borrowing_limit=2), cohort(5, 2)),
        # What a queue keeps for itself is no matter of its cohort.
        (quota(9, 5, parent="c", lending_limit=1), cohort(1, 1)),
    ],
)
def test_what_is_within_quotas_is_right(kept: tuple[QuotaPart, ...]) -> None:
    """A queue's own, or what its cohort lends."""
    assert judge(*held_against(*kept)) == ()


def test_admin_access_takes_nothing_of_a_quota() -> None:
    """Whoever only watches a device does not hold it (KEP-5018)."""
    assert judge(*held_against(quota(0, 0), watches=True)) == ()
