"""Which claims give back what they hold, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from publisher.classic.objects import ClassicClaim
from publisher.classic.plan_claim import ClaimStep, plan_claim
from tests.builders.classic import CONTROLLER, FINALIZER

USER = {"resource": "pods", "name": "pod", "uid": "uid-pod"}


def step(**fields: Any) -> ClaimStep:
    """Plan for a claim of ours that is allocated and protected, unless told else."""
    known: dict[str, Any] = {
        "controller": CONTROLLER,
        "finalizers": (FINALIZER, "other/finalizer"),
        "is_allocated": True,
    }
    return plan_claim(
        ClassicClaim(key="ns/c", uid="u", resource_version="1", **(known | fields))
    )


@pytest.mark.parametrize("why", ["is_deleted", "is_unwanted"])
def test_devices_go_first(why: str) -> None:
    """The allocation goes while the finalizer still keeps the claim."""
    assert step(**{why: True}) == ClaimStep(deallocates=True)


def test_then_the_claim_may_go() -> None:
    """Others' finalizers stay."""
    done = step(is_deleted=True, is_allocated=False)
    assert done == ClaimStep(unprotects=True, finalizers=("other/finalizer",))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"is_allocated": False},
        {"is_deleted": True, "reserved_for": (USER,)},
        {"is_deleted": True, "controller": ""},
        {"is_deleted": True, "finalizers": ("other/finalizer",)},
    ],
)
def test_what_is_used_wanted_or_not_ours_stays(fields: dict[str, Any]) -> None:
    """Nothing is to be done with it."""
    assert step(**fields) == ClaimStep()
