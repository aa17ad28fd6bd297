"""The judge knows which devices a request may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts.features import Features
from contracts.ids import NodeName
from solver.allocate import allocate
from solver.problem.problem import Problem
from solver.snapshot.snapshot import Snapshot
from tests.builders import device, member_claim, request
from tests.builders.broken import (
    BINDING,
    TWO_PODS,
    Broken,
    against,
    device_drawing,
    gang_of,
    problem_with,
    result_changed,
    rules_broken,
    shared_device,
    sliced,
    with_result,
    world,
)

ON = Features(list_type_attributes=True, compatibility_groups=True)


def without_admin() -> Broken:
    watch = gang_of(member_claim(request(admin_access=True)))
    made = problem_with(world(gangs=(watch,)))
    off = structs.replace(made.parameters, features=Features(admin_access=False))
    return Problem(made.pages, made.gangs, made.selectors, off), allocate(made)


def changed_features(snapshot: Snapshot, features: Features, **fields: Any) -> Broken:
    made = problem_with(snapshot, features)
    return made, with_result(allocate(made), **fields)


BROKEN: dict[str, Callable[[], Broken]] = {
    "reachable": lambda: result_changed(
        sliced(
            device("a", node_name=NodeName("n")),
            device("b", node_name=NodeName("m")),
            per_device_node_selection=True,
        ),
        device="b",
    ),
    "bindingConditions": lambda: against(
        problem_with(world(BINDING)),
        problem_with(world(BINDING), Features(device_binding=False)),
    ),
    "capacityPolicy": lambda: against(
        problem_with(world(shared_device("10Gi"), gangs=TWO_PODS[:1])),
        problem_with(world(shared_device("10Gi", "2Gi"), gangs=TWO_PODS[:1])),
    ),
    "partitionable": lambda: changed_features(
        sliced(device("a"), device_drawing("b", "1Gi"), node="n"),
        Features(partitionable_devices=False),
        device="b",
    ),
    "adminAccess": without_admin,
    "nodeOperations": lambda: against(
        problem_with(sliced(device(), node="n", skip_node_operations=("*",))),
        problem_with(sliced(device(), node="n", skip_node_operations=("*",)), ON),
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    """A device that the request may not have is refused by that rule."""
    assert rule.partition(":")[0] in rules_broken(BROKEN[rule]())
