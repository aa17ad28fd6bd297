"""What drivers publish: devices, pools, slices and taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.device import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    SlicePool,
)
from contracts.ids import DeviceName, DriverName, NodeName, PoolName
from contracts.meta import ObjectMeta
from tests.builders.values import DRIVER, NODE, Amount, Value, attribute, quantity


def device(
    name: str = "gpu-0",
    *,
    attributes: Mapping[str, Value] | None = None,
    capacity: Mapping[str, Amount | DeviceCapacity] | None = None,
    consumes: Mapping[str, Mapping[str, Amount]] | None = None,
    **fields: Any,
) -> Device:
    """Make a device; `consumes` is amounts by counter by counter set."""
    return Device(
        name=DeviceName(name),
        attributes={key: attribute(item) for key, item in (attributes or {}).items()},
        capacity={
            key: item
            if isinstance(item, DeviceCapacity)
            else DeviceCapacity(value=quantity(item))
            for key, item in (capacity or {}).items()
        },
        consumes_counters=tuple(
            DeviceCounterConsumption(counter_set=key, counters=_counters(amounts))
            for key, amounts in (consumes or {}).items()
        ),
        **fields,
    )


def devices(count: int, *, prefix: str = "gpu", **fields: Any) -> tuple[Device, ...]:
    """Make devices that differ in name alone (`gpu-0`, `gpu-1`, ...)."""
    return tuple(device(f"{prefix}-{index}", **fields) for index in range(count))


def counter_set(name: str = "counters", **amounts: Amount) -> CounterSet:
    """Make a counter set: `counter_set("gpu-0", memory="80Gi")`."""
    return CounterSet(name=name, counters=_counters(amounts or {"memory": "80Gi"}))


def _counters(amounts: Mapping[str, Amount]) -> dict[str, Counter]:
    return {name: Counter(value=quantity(item)) for name, item in amounts.items()}


def taint(
    key: str = "example.com/broken", value: str = "", effect: str = "NoSchedule"
) -> DeviceTaint:
    """Make a device taint."""
    return DeviceTaint(key=key, value=value, effect=effect)


def pool(
    *content: Device,
    name: str = NODE,
    driver: str = DRIVER,
    generation: int = 1,
    counters: Sequence[CounterSet] = (),
) -> ResourcePool:
    """Make a whole pool of one node: with one device unless some are given."""
    return ResourcePool(
        driver=DriverName(driver),
        name=PoolName(name),
        generation=generation,
        devices=content or (device(),),
        shared_counters=tuple(counters),
    )


def resource_slice(
    *content: Device,
    name: str = "",
    node: str = NODE,
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    slice_count: int = 1,
    counters: Sequence[CounterSet] = (),
    **spec: Any,
) -> ResourceSlice:
    """Make a slice local to `node`, or with the node selection given in `spec`.

    It has one device unless devices or counter sets are given.
    """
    elsewhere = {"node_selector", "all_nodes", "per_device_node_selection", "node_name"}
    if not elsewhere & spec.keys():
        spec["node_name"] = NodeName(node)
    pool = pool or node
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{pool.replace('/', '-')}-{driver}"),
        spec=ResourceSliceSpec(
            driver=DriverName(driver),
            pool=SlicePool(
                name=PoolName(pool),
                generation=generation,
                resource_slice_count=slice_count,
            ),
            devices=content or (() if counters else (device(),)),
            shared_counters=tuple(counters),
            **spec,
        ),
    )


def node_selector(**labels: str) -> NodeSelector:
    """Make a selector of nodes with these labels."""
    return NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=key, operator="In", values=(value,))
                    for key, value in labels.items()
                )
            ),
        )
    )


def node_name_selector(node: str = NODE) -> NodeSelector:
    """Make the selector of allocations on one node."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    term = NodeSelectorTerm(match_fields=(field,))
    return NodeSelector(node_selector_terms=(term,))


def taint_rule(
    rule_taint: DeviceTaint | None = None, *, name: str = "rule", **selector: Any
) -> DeviceTaintRule:
    """Make a rule that taints what `driver=`, `pool=` and `device=` select."""
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(**selector), taint=rule_taint or taint()
        ),
    )
