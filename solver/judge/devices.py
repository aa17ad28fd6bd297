"""Whether a request may have a device at all, whoever else has what in the decision."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.claim import DeviceToleration
from contracts.device import DeviceTaint
from contracts.ids import DeviceID, NodeName
from contracts.names import OWNED
from solver.judge.amounts import consumed
from solver.judge.facts import EXPERIMENTAL, DeviceFacts, Facts
from solver.problem.problem import SubrequestPart

Violations = Iterator[str]


def static_rules(
    facts: Facts,
    node: NodeName,
    asked: SubrequestPart,
    device: tuple[DeviceID, DeviceFacts],
    where: str,
) -> Violations:
    """Judge what does not depend on who has what."""
    features, (name, known) = facts.features, device
    if not known.reachable:
        yield f"reachable: {where} {name} is not for {node}"
    if known.device.binding_conditions and not features.device_binding:
        yield f"bindingConditions: {where} {name} binds, which is switched off"
    if features.consumable_capacity and (asked.capacity or known.device.capacity):
        fractional = features.fractional_capacity_range
        if consumed(known.device, asked.capacity, fractional=fractional) is None:
            yield f"capacityPolicy: {where} {name} cannot give what is asked"


def device_rules(
    facts: Facts,
    node: NodeName,
    asked: SubrequestPart,
    device: tuple[DeviceID, DeviceFacts],
    where: str,
) -> Violations:
    """Judge whether a request may have a device, other pods aside."""
    features, (name, known) = facts.features, device
    yield from static_rules(facts, node, asked, device, where)
    if facts.is_selected(asked, name.driver, known.device) is not True:
        yield f"selected: {where} {name} is refused by its selectors"
    if known.taken and not asked.admin_access:
        yield f"notTaken: {where} {name} is held by somebody"
    for taint in known.taints if features.device_taints else ():
        if not _tolerated(taint, asked.tolerations):
            yield f"tolerated: {where} {name} has the taint {taint.key}"
    if known.device.consumes_counters and not features.partitionable_devices:
        yield f"partitionable: {where} {name} draws from counters, switched off"
    if asked.admin_access and not features.admin_access:
        yield f"adminAccess: {where} {name} is switched off"
    declared = facts.node(node).declared_features
    able = "DRAOptionalNodeOperations" in declared
    if known.item.skip_node_operations and (
        any(getattr(features, name) for name in EXPERIMENTAL)
        and not (able and features.optional_node_operations)
    ):
        yield f"nodeOperations: {where} {name} needs what {node} cannot skip"


def _tolerated(taint: DeviceTaint, tolerations: tuple[DeviceToleration, ...]) -> bool:
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
