"""What is wrong with ResourceSlices: pools, counters, names, nodes."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.device import Device
from moorings.lint.findings import Finding, LintRule, Severity
from solver.devices.gather import Cluster
from solver.devices.node_selectors import node_matches
from solver.errors import NodeSelectorError
from solver.snapshot.parts import NodePart, PoolPart, PoolSlice

POOL = "ResourcePool"


def check_pools(
    pools: list[PoolPart], nodes: list[NodePart], cluster: Cluster
) -> Iterator[Finding]:
    """Go through all pools."""
    for pool in pools:
        yield from _generations(pool)
        yield from _counters(pool)
        for item in pool.slices:
            yield from _slice(item, pool.driver, nodes)
    seen: dict[str, str] = {}
    for node in cluster.nodes.values():
        for found in node.pools:
            if found.view.invalid:
                name = f"{found.view.driver}/{found.view.pool}"
                seen.setdefault(name, f"{found.view.invalid} (seen from {node.name})")
        if node.error:
            seen.setdefault(f"node {node.name}", node.error)
    for name, why in seen.items():
        yield _pool(name, LintRule.POOL_INVALID, Severity.ERROR, why)


def _generations(pool: PoolPart) -> Iterator[Finding]:
    name = f"{pool.driver}/{pool.pool}"
    newest = max(item.generation for item in pool.slices)
    current = [item for item in pool.slices if item.generation == newest]
    wanted = current[0].slice_count
    if len(current) != wanted:
        message = (
            f"{len(current)} of {wanted} slices of generation {newest} are here; "
            "nothing is allocated from it until all are"
        )
        yield _pool(name, LintRule.POOL_INCOMPLETE, Severity.ERROR, message)
    for item in pool.slices:
        if item.generation < newest:
            yield Finding(
                severity=Severity.WARNING,
                kind="ResourceSlice",
                name=item.name,
                field="spec.pool.generation",
                rule=LintRule.POOL_OBSOLETE,
                message=f"generation {item.generation}; the pool is at {newest}",
            )


def _counters(pool: PoolPart) -> Iterator[Finding]:
    totals = {
        (counter_set.name, name): counter.value
        for item in pool.slices
        for counter_set in item.shared_counters
        for name, counter in counter_set.counters.items()
    }
    for item in pool.slices:
        for index, device in enumerate(item.devices):
            for consumption in device.consumes_counters:
                for name, counter in consumption.counters.items():
                    total = totals.get((consumption.counter_set, name))
                    if total is not None and counter.value > total:
                        field = f"spec.devices[{index}].consumesCounters"
                        message = (
                            f"{device.name} draws {counter.value} from "
                            f"{consumption.counter_set}/{name}, which has {total}"
                        )
                        rule = LintRule.COUNTER_EXCEEDED
                        yield _of(item, field, rule, Severity.ERROR, message)


def _slice(item: PoolSlice, driver: str, nodes: list[NodePart]) -> Iterator[Finding]:
    for index, device in enumerate(item.devices):
        for name in _twice(device, driver):
            field = f"spec.devices[{index}].{name}"
            message = f"{device.name} has it under its bare and its full name"
            rule = LintRule.ATTRIBUTE_TWICE
            yield _of(item, field, rule, Severity.WARNING, message)
    if nodes and not item.per_device_node_selection and not _is_somewhere(item, nodes):
        message = "no Node of the input is meant by it"
        rule = LintRule.SLICE_NOWHERE
        yield _of(item, "spec", rule, Severity.WARNING, message)


def _twice(device: Device, driver: str) -> list[str]:
    """List what stands under its bare name and under its full one."""
    return [
        f"{field}[{name}]"
        for field, named in (
            ("attributes", device.attributes),
            ("capacity", device.capacity),
        )
        for name in sorted(named)
        if f"{driver}/{name}" in named
    ]


def _is_somewhere(item: PoolSlice, nodes: list[NodePart]) -> bool:
    if item.all_nodes or item.shared_counters:
        return True
    if item.node_name:
        return any(node.name == item.node_name for node in nodes)
    try:
        selector = item.node_selector
        return selector is not None and any(node_matches(selector, n) for n in nodes)
    except NodeSelectorError:
        return False


def _pool(name: str, rule: LintRule, severity: Severity, message: str) -> Finding:
    return Finding(severity=severity, kind=POOL, name=name, rule=rule, message=message)


def _of(
    item: PoolSlice, field: str, rule: LintRule, severity: Severity, message: str
) -> Finding:
    return Finding(
        severity=severity,
        kind="ResourceSlice",
        name=item.name,
        field=field,
        rule=rule,
        message=message,
    )
