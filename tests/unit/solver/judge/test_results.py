"""Decisions that look right and are not: the judge refuses them all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import ResultToleration
from contracts.claim import DeviceConfiguration, OpaqueDeviceConfiguration
from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.ids import DriverName, NodeName
from solver.allocate import allocate
from solver.judge.rules import judge
from tests.builders import (
    DRIVER,
    claim_spec,
    device,
    devices,
    member_claim,
    node_name_selector,
    request,
    resource_slice,
    toleration,
)
from tests.builders.problems import observe
from tests.unit.solver.test_judge import (
    BINDING,
    TWO_PODS,
    Broken,
    against,
    asked,
    changed,
    decided,
    problem,
    shared,
    sliced,
    with_result,
    world,
)

MALFORMED = NodeSelector(
    node_selector_terms=(
        NodeSelectorTerm(
            match_expressions=(NodeSelectorRequirement(key="rank", operator="Gt"),)
        ),
    )
)


def without_objective() -> Broken:
    made = problem(world())
    return made, structs.replace(allocate(made), objective=())


def on_unknown_node() -> Broken:
    made = problem(sliced(device(), all_nodes=True))
    decision = allocate(made)
    first = decision.gangs[0]
    pods = tuple(structs.replace(p, node=NodeName("ghost")) for p in first.members)
    gang = structs.replace(first, members=pods)
    return made, structs.replace(decision, gangs=(gang,))


def one_share_id() -> Broken:
    made = problem(world(shared("10Gi"), gangs=TWO_PODS))
    decision = allocate(made)
    pod = decision.gangs[1].members[0]
    (taken,) = pod.claims[0].allocation.devices.results
    return made, with_result(decision, share_id=taken.share_id)


def beside_malformed() -> Broken:
    odd = resource_slice(device(), pool="odd", node_selector=MALFORMED)
    return against(problem(world()), problem(observe(world(), "odd", odd)))


OPAQUE = OpaqueDeviceConfiguration(
    driver=DriverName(DRIVER), parameters={"mode": "fast"}
)
CONFIGURED = structs.replace(
    member_claim(),
    spec=claim_spec(
        request("one"),
        request("two"),
        config=(DeviceConfiguration(requests=("one",), opaque=OPAQUE),),
    ),
)


def other_requests(allocation: Any) -> Any:
    (item,) = allocation.devices.config
    config = (structs.replace(item, requests=("two",)),)
    inner = structs.replace(allocation.devices, config=config)
    return structs.replace(allocation, devices=inner)


TOLERANT = asked(member_claim(request(tolerations=(toleration(),))))
SUBTLE: dict[str, tuple[str, Callable[[], Broken]]] = {
    "a node that does not exist": ("nodeUsable", on_unknown_node),
    "a malformed selector on the node": ("nodeUsable", beside_malformed),
    "a share id of another pod": ("shareId", one_share_id),
    "a missing tier": ("valueIsTrue", without_objective),
    "another toleration": (
        "tolerationsWritten",
        lambda: changed(
            world(gangs=(TOLERANT,)),
            tolerations=(ResultToleration(key="other", operator="Exists"),),
        ),
    ),
    "dropped failure conditions": (
        "bindingWritten",
        lambda: changed(world(BINDING), binding_failure_conditions=()),
    ),
    "configuration of another request": (
        "configWritten",
        lambda: decided(world(*devices(2), gangs=(asked(CONFIGURED),)), other_requests),
    ),
    "a dropped node selector": (
        "nodeSelectorWritten",
        lambda: decided(
            sliced(device(), node_selector=node_name_selector("n")),
            lambda allocation: structs.replace(allocation, node_selector=None),
        ),
    ),
}


@pytest.mark.parametrize("case", SUBTLE)
def test_what_looks_right_is_refused_too(case: str) -> None:
    rule, make = SUBTLE[case]
    held, decision = make()
    assert any(item.members for item in decision.gangs)
    found = {violation.partition(":")[0] for violation in judge(held, decision)}
    assert rule in found
