"""What a single device must be for a request, whatever else is given out."""

from __future__ import annotations

from contracts.claim import DeviceToleration
from contracts.device import DeviceTaint
from contracts.ids import DeviceID, NodeName
from contracts.names import OWNED
from solver.judge.amounts import consumption_of
from solver.judge.facts import EXPERIMENTAL, DeviceFacts, Facts, Violations
from solver.problem.gangs import SubrequestPart


def judge_device_alone(
    facts: Facts,
    node: NodeName,
    subrequest: SubrequestPart,
    device: tuple[DeviceID, DeviceFacts],
    where: str,
) -> Violations:
    """Judge what does not depend on who has what, nor on selectors and taints."""
    features, (name, device_facts) = facts.features, device
    if not device_facts.reachable:
        yield f"reachable: {where} {name} is not for {node}"
    if device_facts.device.binding_conditions and not features.device_binding:
        yield f"bindingConditions: {where} {name} binds, which is switched off"
    if features.partitionable_devices and any(
        counter.value.nano < 0
        for consumption in device_facts.device.consumes_counters
        for counter in consumption.counters.values()
    ):
        yield f"negativeDraw: {where} {name} draws less than nothing from a counter"
    if features.consumable_capacity and (
        subrequest.capacity or device_facts.device.capacity
    ):
        asked = subrequest.capacity
        if consumption_of(device_facts.device, asked, features, name.driver) is None:
            yield f"capacityPolicy: {where} {name} cannot give what is asked"


def judge_device(
    facts: Facts,
    node: NodeName,
    subrequest: SubrequestPart,
    device: tuple[DeviceID, DeviceFacts],
    where: str,
) -> Violations:
    """Judge whether a request may have a device, other pods aside."""
    features, (name, device_facts) = facts.features, device
    yield from judge_device_alone(facts, node, subrequest, device, where)
    if facts.is_chosen(node, subrequest, name, device_facts.device) is not True:
        yield f"selected: {where} {name} is refused by its selectors"
    if device_facts.taken and not subrequest.admin_access:
        yield f"notTaken: {where} {name} is held by somebody"
    for taint in device_facts.taints if features.device_taints else ():
        if not _is_tolerated(taint, subrequest.tolerations):
            yield f"tolerated: {where} {name} has the taint {taint.key}"
    if device_facts.device.consumes_counters and not features.partitionable_devices:
        yield f"partitionable: {where} {name} draws from counters, switched off"
    if subrequest.admin_access and not features.admin_access:
        yield f"adminAccess: {where} {name} is switched off"
    if device_facts.pool_slice.skip_node_operations and any(
        getattr(features, gate) for gate in EXPERIMENTAL
    ):
        declared = facts.find_node(node).declared_features
        able = "DRAOptionalNodeOperations" in declared
        if not (able and features.optional_node_operations):
            yield f"nodeOperations: {where} {name} needs what {node} cannot skip"


def _is_tolerated(
    taint: DeviceTaint, tolerations: tuple[DeviceToleration, ...]
) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return True
    if taint.key == OWNED:
        return True
    for toleration in tolerations:
        same_effect = toleration.effect in ("", taint.effect)
        same_key = toleration.key in ("", taint.key)
        exists = toleration.operator == "Exists"
        equal = toleration.operator in ("", "Equal") and toleration.value == taint.value
        if same_effect and same_key and (exists or equal):
            return True
    return False
