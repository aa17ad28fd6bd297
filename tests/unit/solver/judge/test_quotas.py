"""The judge counts what namespaces hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.ids import DriverName, Namespace
from solver.allocate import allocate
from solver.judge.rules import judge
from solver.problem.problem import Problem, QuotaPart
from tests.builders import DRIVER, devices, member_claim, request
from tests.builders.broken import Broken, gang_of, problem_with, rules_broken, world
from tests.builders.values import NAMESPACE

TWO = gang_of(member_claim(request(count=2)))
WATCH = gang_of(member_claim(request(count=2, admin_access=True)))
ONE_MORE = gang_of(member_claim(request()), number=2)


def quota(limit: int, used: int, *, driver: str = "", namespace: str = "") -> QuotaPart:
    return QuotaPart(
        namespace=Namespace(namespace or NAMESPACE),
        driver=DriverName(driver),
        limit=limit,
        used=used,
    )


def held_against(*quotas: QuotaPart, watches: bool = False) -> Broken:
    """Decide three devices, or two that are watched, and hold quotas against it."""
    gangs = (WATCH,) if watches else (TWO, ONE_MORE)
    made = problem_with(world(*devices(3), gangs=gangs))
    asked = Problem(
        made.pages, made.gangs, made.selectors, made.parameters, quotas=quotas
    )
    return asked, allocate(made)


BROKEN: dict[str, Callable[[], Broken]] = {
    "quotaKept": lambda: held_against(quota(2, 0)),
    "quotaKept: what it held": lambda: held_against(quota(64, 62)),
    "quotaKept: one of two": lambda: held_against(quota(64, 0), quota(2, 0)),
    "quotaKept: of a driver": lambda: held_against(quota(64, 62, driver=DRIVER)),
    "quotaKept: was more": lambda: held_against(quota(1, 9)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_more_than_a_namespace_may_hold_is_named(name: str) -> None:
    """What it held before counts, and what all gangs of the batch get."""
    assert rules_broken(BROKEN[name]()) == {"quotaKept"}


def test_a_violation_has_the_namespace_and_the_numbers() -> None:
    """Two of one gang and one of another, beside those held before."""
    (said,) = judge(*held_against(quota(64, 62, driver=DRIVER)))
    assert said == (
        f"quotaKept: namespace {NAMESPACE} would hold 65 devices of {DRIVER} of 64"
    )


@pytest.mark.parametrize(
    "kept",
    [
        quota(3, 0),
        quota(0, 0, namespace="other"),
        quota(0, 0, driver="other.example.com"),
    ],
)
def test_what_is_within_a_quota_or_not_meant_is_right(kept: QuotaPart) -> None:
    """Other namespaces, and other drivers, have quotas of their own."""
    assert judge(*held_against(kept)) == ()


def test_admin_access_takes_nothing_of_a_quota() -> None:
    """Whoever only watches a device does not hold it (KEP-5018)."""
    assert judge(*held_against(quota(0, 0), watches=True)) == ()
