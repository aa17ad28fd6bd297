"""Checks ResourceSlices: pools, counters, names, nodes."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.counts import counted
from contracts.device import Device
from contracts.features import Features
from moorings.lint.findings import Finding, LintRule, Severity
from solver.devices.gather import Cluster
from solver.devices.node_selectors import node_matches
from solver.errors import NodeSelectorError
from solver.snapshot.parts import NodePart, PoolPart, PoolSlice

POOL = "ResourcePool"


def check_pools(
    pools: list[PoolPart],
    nodes: list[NodePart],
    cluster: Cluster,
    features: Features,
) -> Iterator[Finding]:
    """Check all pools, each slice of them, and what nodes see of them."""
    for pool in pools:
        for pool_slice in pool.slices:
            yield from _check_features(pool_slice, features)
        yield from _check_generations(pool)
        yield from _check_counters(pool)
        for pool_slice in pool.slices:
            yield from _check_slice(pool_slice, pool.driver, nodes)
    invalid: dict[str, str] = {}
    for node in cluster.nodes.values():
        for node_pool in node.pools:
            if node_pool.invalid:
                name = f"{node_pool.driver}/{node_pool.pool}"
                invalid.setdefault(name, f"{node_pool.invalid} (seen from {node.name})")
        if node.error:
            invalid.setdefault(f"node {node.name}", node.error)
    for name, why in invalid.items():
        yield _report_pool(name, LintRule.POOL_INVALID, Severity.ERROR, why)


def _check_generations(pool: PoolPart) -> Iterator[Finding]:
    name = f"{pool.driver}/{pool.pool}"
    newest = max(pool_slice.generation for pool_slice in pool.slices)
    current = [
        pool_slice for pool_slice in pool.slices if pool_slice.generation == newest
    ]
    slice_count = current[0].slice_count
    nodes = sorted({str(pool_slice.node_name) for pool_slice in current})
    if len(current) > slice_count and len(nodes) * slice_count == len(current):
        # Each node sees its own slices alone, and so a whole pool.
        message = (
            f"nodes {nodes[0]} and {nodes[1]} publish it, each as a whole pool; a "
            "device is known by driver, pool and name, so equal names are one device: "
            "name the pool by its node"
        )
        yield _report_pool(name, LintRule.POOL_AMBIGUOUS, Severity.ERROR, message)
    elif len(current) != slice_count:
        here = f"{counted(len(current), 'slice')} of generation {newest}"
        message = (
            f"has {here}, and says that it has {slice_count}; nothing is allocated "
            "from it until the numbers are equal"
        )
        yield _report_pool(name, LintRule.POOL_INCOMPLETE, Severity.ERROR, message)
    for pool_slice in pool.slices:
        if pool_slice.generation < newest:
            yield Finding(
                severity=Severity.WARNING,
                kind="ResourceSlice",
                name=pool_slice.name,
                field="spec.pool.generation",
                rule=LintRule.POOL_OBSOLETE,
                message=f"generation {pool_slice.generation}; the pool is at {newest}",
            )


def _check_features(pool_slice: PoolSlice, features: Features) -> Iterator[Finding]:
    """Find what makes the allocator ignore a slice while a gate is off."""
    needed: list[tuple[str, str]] = []
    if not features.partitionable_devices:
        if pool_slice.shared_counters:
            needed.append(("spec.sharedCounters", "DRAPartitionableDevices"))
        if pool_slice.per_device_node_selection is not None:
            needed.append(("spec.perDeviceNodeSelection", "DRAPartitionableDevices"))
    if not features.compatibility_groups:
        needed += [
            (
                f"spec.devices[{index}].consumesCounters[].compatibilityGroups",
                "DRADeviceCompatibilityGroups",
            )
            for index, device in enumerate(pool_slice.devices)
            if any(each.compatibility_groups for each in device.consumes_counters)
        ][:1]
    for field, gate in needed:
        message = f"the gate {gate} is off: nothing is allocated from the slice"
        yield _make_finding(
            pool_slice, field, LintRule.FEATURE_OFF, Severity.ERROR, message
        )


def _check_counters(pool: PoolPart) -> Iterator[Finding]:
    totals = {
        (counter_set.name, name): counter.value
        for pool_slice in pool.slices
        for counter_set in pool_slice.shared_counters
        for name, counter in counter_set.counters.items()
    }
    for pool_slice in pool.slices:
        for index, device in enumerate(pool_slice.devices):
            for consumption in device.consumes_counters:
                for name, counter in consumption.counters.items():
                    field = f"spec.devices[{index}].consumesCounters"
                    if counter.value.nano < 0:
                        message = (
                            f"{device.name} draws {counter.value} from "
                            f"{consumption.counter_set}/{name}: it cannot be "
                            "allocated"
                        )
                        rule = LintRule.COUNTER_NEGATIVE
                        yield _make_finding(
                            pool_slice, field, rule, Severity.ERROR, message
                        )
                    total = totals.get((consumption.counter_set, name))
                    if total is not None and counter.value > total:
                        message = (
                            f"{device.name} draws {counter.value} from "
                            f"{consumption.counter_set}/{name}, which has {total}"
                        )
                        rule = LintRule.COUNTER_EXCEEDED
                        yield _make_finding(
                            pool_slice, field, rule, Severity.ERROR, message
                        )


def _check_slice(
    pool_slice: PoolSlice, driver: str, nodes: list[NodePart]
) -> Iterator[Finding]:
    for index, device in enumerate(pool_slice.devices):
        for name in _list_doubles(device, driver):
            field = f"spec.devices[{index}].{name}"
            message = f"{device.name} has it under its bare and its full name"
            rule = LintRule.ATTRIBUTE_TWICE
            yield _make_finding(pool_slice, field, rule, Severity.WARNING, message)
    if (
        nodes
        and not pool_slice.per_device_node_selection
        and not _is_somewhere(pool_slice, nodes)
    ):
        message = "it applies to no Node of the input"
        rule = LintRule.SLICE_NOWHERE
        yield _make_finding(pool_slice, "spec", rule, Severity.WARNING, message)


def _list_doubles(device: Device, driver: str) -> list[str]:
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


def _is_somewhere(pool_slice: PoolSlice, nodes: list[NodePart]) -> bool:
    if pool_slice.all_nodes or pool_slice.shared_counters:
        return True
    if pool_slice.node_name:
        return any(node.name == pool_slice.node_name for node in nodes)
    try:
        selector = pool_slice.node_selector
        return selector is not None and any(node_matches(selector, n) for n in nodes)
    except NodeSelectorError:
        return False


def _report_pool(
    name: str, rule: LintRule, severity: Severity, message: str
) -> Finding:
    return Finding(severity=severity, kind=POOL, name=name, rule=rule, message=message)


def _make_finding(
    pool_slice: PoolSlice, field: str, rule: LintRule, severity: Severity, message: str
) -> Finding:
    return Finding(
        severity=severity,
        kind="ResourceSlice",
        name=pool_slice.name,
        field=field,
        rule=rule,
        message=message,
    )
