"""The judge reads what is written of each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import DeviceAllocationConfiguration, ResultToleration
from contracts.claim import DeviceConfiguration, OpaqueDeviceConfiguration
from contracts.ids import DriverName
from solver.allocate import allocate
from tests.builders import (
    DRIVER,
    claim_spec,
    device,
    devices,
    member_claim,
    node_name_selector,
    request,
    toleration,
)
from tests.builders.broken import (
    BINDING,
    TWO_PODS,
    Broken,
    allocation_changed,
    gang_of,
    problem_with,
    result_changed,
    rules_broken,
    shared_device,
    sliced,
    with_result,
    world,
)

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

TOLERANT = gang_of(member_claim(request(tolerations=(toleration(),))))


def config(allocation: Any) -> Any:
    more = DeviceAllocationConfiguration(source="FromClaim")
    inner = structs.replace(allocation.devices, config=(more,))
    return structs.replace(allocation, devices=inner)


def one_share_id() -> Broken:
    made = problem_with(world(shared_device("10Gi"), gangs=TWO_PODS))
    decision = allocate(made)
    pod = decision.gangs[1].members[0]
    (taken,) = pod.claims[0].allocation.devices.results
    return made, with_result(decision, share_id=taken.share_id)


def other_requests(allocation: Any) -> Any:
    (item,) = allocation.devices.config
    config = (structs.replace(item, requests=("two",)),)
    inner = structs.replace(allocation.devices, config=config)
    return structs.replace(allocation, devices=inner)


BROKEN: dict[str, Callable[[], Broken]] = {
    "adminWritten": lambda: result_changed(
        world(gangs=(gang_of(member_claim(request(admin_access=True))),)),
        admin_access=None,
    ),
    "tolerationsWritten": lambda: result_changed(
        world(gangs=(gang_of(member_claim(request(tolerations=(toleration(),)))),)),
        tolerations=(),
    ),
    "shareId": lambda: result_changed(
        world(shared_device("10Gi"), gangs=TWO_PODS[:1]), share_id=None
    ),
    "consumedWritten": lambda: result_changed(
        world(shared_device("10Gi"), gangs=TWO_PODS[:1]), consumed_capacity={}
    ),
    "bindingWritten": lambda: result_changed(world(BINDING), binding_conditions=()),
    "operationsWritten": lambda: result_changed(
        sliced(device(), node="n"), skip_node_operations=("*",)
    ),
    "configWritten": lambda: allocation_changed(world(), config),
    "nodeSelectorWritten": lambda: allocation_changed(
        world(),
        lambda allocation: structs.replace(
            allocation, node_selector=node_name_selector("elsewhere")
        ),
    ),
    "shareId: a share id of another pod": one_share_id,
    "tolerationsWritten: another toleration": lambda: result_changed(
        world(gangs=(TOLERANT,)),
        tolerations=(ResultToleration(key="other", operator="Exists"),),
    ),
    "bindingWritten: dropped failure conditions": lambda: result_changed(
        world(BINDING), binding_failure_conditions=()
    ),
    "configWritten: configuration of another request": lambda: allocation_changed(
        world(*devices(2), gangs=(gang_of(CONFIGURED),)), other_requests
    ),
    "nodeSelectorWritten: a dropped node selector": lambda: allocation_changed(
        sliced(device(), node_selector=node_name_selector("n")),
        lambda allocation: structs.replace(allocation, node_selector=None),
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    """A result that says something else is refused, however right it looks."""
    assert rule.partition(":")[0] in rules_broken(BROKEN[rule]())
