"""Patterns decide what reaches no further than a node and uses something up."""

from __future__ import annotations

from typing import Any

import pytest

from solver.engines.choose import DIRECT, PATTERN, EngineChoice, choose_engine
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders import (
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    resource_slice,
)
from tests.builders.problems import observe, problem_of, snapshot_of


def choice_of(*requests: Any, fabric: bool = False, shared: bool = False) -> Any:
    """Choose an engine for one pod and a node with two devices."""
    content = devices(2, allow_multiple_allocations=True) if shared else devices(2)
    pod = member(member_claim(*requests))
    snapshot = snapshot_of({"n": [pool(*content, name="n")]}, [gang(pod)])
    if fabric:
        item = resource_slice(device("link"), name="f", pool="f", all_nodes=True)
        snapshot = observe(snapshot, "f", item)
    problem = problem_of(snapshot)
    demand = Demand(problem.gangs)
    return choose_engine(demand, find_node_kinds(problem, demand.query))


def test_devices_of_one_node_that_are_used_up_are_for_patterns() -> None:
    """Which is nearly every batch."""
    choice = choice_of(request())
    assert isinstance(choice, EngineChoice)
    assert choice.engine == PATTERN


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (choice_of(request(admin_access=True)), "admin access takes nothing"),
        (choice_of(request(), fabric=True), "devices that several nodes see"),
        (choice_of(request(), shared=True), "pods that use nothing up"),
    ],
)
def test_what_has_no_end_or_reaches_further_is_for_the_direct_model(
    choice: EngineChoice, reason: str
) -> None:
    """And the Decision says why."""
    assert choice == EngineChoice(DIRECT, reason)
