"""ResourceSlices as drivers publish them: devices, attributes, counters, taints.

The Structs have the shape of `resource.k8s.io/v1` to the letter. They hold what was
written, valid or not: `validate.py` says what the API server would refuse, and the
solver decides what that means.
"""

from __future__ import annotations

from typing import Any

from contracts.ids import DeviceName, DriverName, NodeName, PoolName
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from contracts.structs import Int64, KubernetesStruct

NODE_FIELD = "metadata.name"
"""The one field of nodes that selectors may compare."""


class DeviceAttribute(
    KubernetesStruct,
    frozen=True,
    kw_only=True,
    rename={
        "int_value": "int",
        "bool_value": "bool",
        "string_value": "string",
        "version_value": "version",
        "int_values": "ints",
        "bool_values": "bools",
        "string_values": "strings",
        "version_values": "versions",
    },
):
    """One attribute's value: exactly one field is set in a valid object.

    Source: resource.k8s.io/v1 DeviceAttribute; lists are KEP-5491.
    """

    int_value: Int64 | None = None
    bool_value: bool | None = None
    string_value: str | None = None
    version_value: str | None = None
    """Semantic Version 2.0.0."""
    int_values: tuple[Int64, ...] | None = None
    bool_values: tuple[bool, ...] | None = None
    string_values: tuple[str, ...] | None = None
    version_values: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(KubernetesStruct, frozen=True, kw_only=True):
    """Amounts from `min` to `max` in multiples of `step` (KEP-5075)."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """How much of a capacity one request may consume (KEP-5075)."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(KubernetesStruct, frozen=True, kw_only=True):
    """A capacity's total value, and what may be asked of it."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(KubernetesStruct, frozen=True, kw_only=True):
    """An amount of a shared counter."""

    value: Quantity


class CounterSet(KubernetesStruct, frozen=True, kw_only=True):
    """Counters that the devices of a pool draw from (KEP-4815)."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(KubernetesStruct, frozen=True, kw_only=True):
    """The counters that an allocated device consumes of one counter set of its pool."""

    counter_set: str
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] | None = None
    """KEP-5963, alpha in 1.37."""


class DeviceTaint(KubernetesStruct, frozen=True, kw_only=True):
    """A taint on a device (KEP-5055)."""

    key: str
    value: str = ""
    effect: str = ""
    """`None`, `NoSchedule` or `NoExecute`; others have no effect."""
    time_added: str | None = None


class NodeSelectorRequirement(KubernetesStruct, frozen=True, kw_only=True):
    """One comparison of a label or field of a node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(KubernetesStruct, frozen=True, kw_only=True):
    """Comparisons that must all hold; an empty term matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubernetesStruct, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()

    @classmethod
    def of_node(cls, node: NodeName) -> NodeSelector:
        """Select a node by its name, in the one shape that authorization knows too."""
        field = NodeSelectorRequirement(key=NODE_FIELD, operator="In", values=(node,))
        return cls(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))

    @classmethod
    def except_node(cls, node: NodeName) -> NodeSelector:
        """Select every node but one."""
        field = NodeSelectorRequirement(
            key=NODE_FIELD, operator="NotIn", values=(node,)
        )
        return cls(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))

    @property
    def only_node(self) -> NodeName:
        """The one node that is selected by name; empty: it is not that simple."""
        terms = self.node_selector_terms
        if len(terms) != 1 or terms[0].match_expressions:
            return NodeName("")
        fields = terms[0].match_fields
        if len(fields) != 1 or len(fields[0].values) != 1:
            return NodeName("")
        if (fields[0].key, fields[0].operator) != (NODE_FIELD, "In"):
            return NodeName("")
        return NodeName(fields[0].values[0])


class Device(KubernetesStruct, frozen=True, kw_only=True):
    """A device of a ResourceSlice.

    Source: resource.k8s.io/v1 Device; KEP-4381, 4815, 5007, 5055, 5075, 5491, 5517.
    """

    name: DeviceName
    attributes: dict[str, DeviceAttribute] = {}
    """By qualified name."""
    capacity: dict[str, DeviceCapacity] = {}
    """By qualified name."""
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, Any] | None = None
    """As written: mapping and overhead by resource name (KEP-5517, alpha)."""


class SlicePool(KubernetesStruct, frozen=True, kw_only=True):
    """Which pool a slice belongs to (`spec.pool`)."""

    name: PoolName
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a ResourceSlice."""

    driver: DriverName
    pool: SlicePool
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] | None = None


class ResourceSlice(KubernetesStruct, frozen=True, kw_only=True):
    """Devices that a driver offers: a part of one pool."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec


class ResourcePool(KubernetesStruct, frozen=True, kw_only=True):
    """A whole pool of one node as its node agent announces it.

    The publisher splits it into ResourceSlices; the solver needs no split.
    """

    driver: DriverName
    name: PoolName
    generation: Int64 = 0
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class DeviceTaintSelector(KubernetesStruct, frozen=True, kw_only=True):
    """Which devices a DeviceTaintRule taints: all set fields must be equal."""

    driver: DriverName | None = None
    pool: PoolName | None = None
    device: DeviceName | None = None


class DeviceTaintRuleSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The taint and where it goes."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRule(KubernetesStruct, frozen=True, kw_only=True):
    """A taint that an administrator adds to devices (KEP-5055)."""

    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec
