"""The judge counts what pods share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from contracts.features import Features
from solver.allocate import allocate
from tests.builders import devices, member_claim, request
from tests.builders.broken import (
    TWO_PODS,
    Broken,
    against,
    counters,
    device_drawing,
    gang_of,
    problem_with,
    rules_broken,
    shared_device,
    world,
)

ON = Features(list_type_attributes=True, compatibility_groups=True)

WATCH_AND_WORK = gang_of(
    member_claim(request(admin_access=True), name="watch"),
    member_claim(request(), name="work"),
)


def late_work() -> Broken:
    made = problem_with(world(*devices(2), gangs=(WATCH_AND_WORK,)))
    decision = allocate(made)
    pod = decision.gangs[0].members[0]
    (seen,) = pod.claims[0].allocation.devices.results
    work = pod.claims[1]
    (worked,) = work.allocation.devices.results
    inner = structs.replace(
        work.allocation.devices, results=(structs.replace(worked, device=seen.device),)
    )
    claim = structs.replace(
        work, allocation=structs.replace(work.allocation, devices=inner)
    )
    pod = structs.replace(pod, claims=(pod.claims[0], claim))
    first = structs.replace(decision.gangs[0], members=(pod,))
    return made, structs.replace(decision, gangs=(first,))


BROKEN: dict[str, Callable[[], Broken]] = {
    "capacitySuffices": lambda: against(
        problem_with(world(shared_device("10Gi"), gangs=TWO_PODS)),
        problem_with(world(shared_device("7Gi", "7Gi"), gangs=TWO_PODS)),
    ),
    "countersSuffice": lambda: against(
        problem_with(
            world(
                device_drawing("a", "40Gi"),
                device_drawing("b", "40Gi"),
                counters=counters("80Gi"),
                gangs=(gang_of(member_claim(request(count=2))),),
            )
        ),
        problem_with(
            world(
                device_drawing("a", "40Gi"),
                device_drawing("b", "40Gi"),
                counters=counters("60Gi"),
                gangs=(gang_of(member_claim(request(count=2))),),
            )
        ),
    ),
    "groupsAgree": lambda: against(
        problem_with(
            world(
                device_drawing("a", "1Gi", "one"),
                device_drawing("b", "1Gi", "one"),
                counters=counters("80Gi"),
                gangs=(gang_of(member_claim(request(count=2))),),
            ),
            ON,
        ),
        problem_with(
            world(
                device_drawing("a", "1Gi", "one"),
                device_drawing("b", "1Gi", "two"),
                counters=counters("80Gi"),
                gangs=(gang_of(member_claim(request(count=2))),),
            ),
            ON,
        ),
    ),
    "adminOrder": late_work,
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    """More than there is to share is refused by that rule."""
    assert rule.partition(":")[0] in rules_broken(BROKEN[rule]())
