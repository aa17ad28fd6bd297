"""Device taints, tolerations and DeviceTaintRules (KEP-5055).

Stands apart because slices, claims, allocations and gangs all hold one or the other;
whom a taint keeps out is not known here.
"""

from __future__ import annotations

from contracts.allocation import ResultToleration
from contracts.claim import DeviceToleration
from contracts.device import DeviceTaint, DeviceTaintRule
from contracts.gang import NodeToleration
from contracts.validate import names
from contracts.validate.violation import Violations, check_one_of, invalid, unsupported

MAX_TAINTS = 16
MAX_TOLERATIONS = 16
EFFECTS = ("NoExecute", "NoSchedule", "None")
NODE_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
OPERATORS = ("Equal", "Exists")


def check_taint(value: DeviceTaint, path: str) -> Violations:
    """Require a taint with key and effect."""
    yield from names.check_label_key(value.key, f"{path}.key")
    yield from names.check_label_value(value.value, f"{path}.value")
    yield from check_one_of(f"{path}.effect", value.effect, EFFECTS)


def check_toleration(
    value: DeviceToleration | ResultToleration, path: str
) -> Violations:
    """Require a toleration of device taints."""
    yield from check_one_of(f"{path}.operator", value.operator, OPERATORS)
    yield from _check_toleration(value, EFFECTS, path)


def check_node_toleration(value: NodeToleration, path: str) -> Violations:
    """Require a toleration of node taints; its operator may be left out."""
    if value.operator and value.operator not in OPERATORS:
        yield unsupported(f"{path}.operator", value.operator, OPERATORS)
    if not value.key and value.operator != "Exists":
        message = "operator must be Exists when `key` is empty"
        yield invalid(f"{path}.operator", value.operator, message)
    yield from _check_toleration(value, NODE_EFFECTS, path)


def _check_toleration(
    value: DeviceToleration | ResultToleration | NodeToleration,
    effects: tuple[str, ...],
    path: str,
) -> Violations:
    if value.key:
        yield from names.check_label_key(value.key, f"{path}.key")
    if value.operator == "Exists" and value.value:
        message = "must be empty for operator `Exists`"
        yield invalid(f"{path}.value", value.value, message)
    elif value.operator != "Exists":
        yield from names.check_label_value(value.value, f"{path}.value")
    if value.effect and value.effect not in effects:
        yield unsupported(f"{path}.effect", value.effect, effects)


def check_taint_rule(rule: DeviceTaintRule) -> Violations:
    """Require a rule with a whole taint and names that can exist."""
    yield from names.check_object_name(rule.metadata)
    selector = rule.spec.device_selector
    path = "spec.deviceSelector"
    if selector is not None:
        if selector.driver is not None:
            yield from names.check_driver_name(selector.driver, f"{path}.driver")
        if selector.pool is not None:
            yield from names.check_pool_name(selector.pool, f"{path}.pool")
        if selector.device is not None:
            yield from names.check_dns_label(selector.device, f"{path}.device")
    yield from check_taint(rule.spec.taint, "spec.taint")
