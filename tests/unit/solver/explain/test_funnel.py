"""The first rule that leaves too few devices is the reason, with its counts."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.allocate import allocate
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    taint,
)
from tests.builders.problems import problem_of, snapshot_of

NAMES = [
    DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName(f"gpu-{index}"))
    for index in range(2)
]


def reason_of(*requests: Any, constraints: Any = (), **world: Any) -> Reason:
    """Ask for devices of a node with two of them; say why there are none."""
    pod = member(member_claim(*requests, constraints=constraints))
    nodes = {"n": [pool(*devices(2), name="n")]}
    decision = allocate(problem_of(snapshot_of(nodes, [gang(pod)], **world)))
    (reason,) = decision.gangs[0].reasons
    return reason


def test_too_few_devices_are_counted() -> None:
    """Nobody holds any, so there is no candidate."""
    reason = reason_of(request(count=3))
    assert reason.rule is Rule.NO_CANDIDATE
    assert reason.subject == "worker/gpus/gpu"


@pytest.mark.parametrize(
    ("world", "rule"),
    [
        ({"taken": NAMES}, Rule.TAKEN),
        ({"taints": {name: taint() for name in NAMES}}, Rule.TAINTED),
        ({"taken": NAMES[:1], "taints": {NAMES[1]: taint()}}, Rule.TAINTED),
        ({"away": ["n"]}, Rule.NODE),
    ],
)
def test_enough_devices_that_cannot_be_had_say_why(
    world: dict[str, Any], rule: Rule
) -> None:
    """Held by others, tainted, or on a node that is away."""
    assert reason_of(request(), **world).rule is rule


def test_devices_that_do_not_match_are_the_constraints_fault() -> None:
    """Each would do alone; together they have no value in common."""
    reason = reason_of(request(count=2), constraints=[constraint()])
    assert reason.rule is Rule.CONSTRAINT


def test_a_request_for_all_says_which_of_them_cannot_be_had() -> None:
    """It is not met by the rest, whatever is free."""
    reason = reason_of(request(mode="All"), taken=NAMES[:1])
    assert reason.rule is Rule.TAKEN
    assert "all matching devices" in reason.message
    assert reason.facts["free"] == 1


def test_a_selector_that_fails_is_named_with_its_device() -> None:
    """Its author finds both in the message."""
    broken = f'device.attributes["{DRIVER}"].model == "big"'
    reason = reason_of(request(select=(broken,)))
    assert reason.rule is Rule.SELECTOR_ERROR
    assert device().name in reason.message
