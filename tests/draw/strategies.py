"""Hypothesis strategies for every contract: anything at all, and what is valid.

`of(kind)` draws any value of a Struct, valid or not; the rest draws from the builders
what the API server would take, in bulk and without rejection.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

from contracts.claim import DeviceClass, DeviceRequest, ResourceClaim
from contracts.device import Device, DeviceTaint, ResourcePool, ResourceSlice
from contracts.gang import Gang, Member, NodeToleration
from contracts.ids import ClusterName, GangUID, NodeName
from contracts.messages import DevicesAnnounced, SubmitGang
from contracts.quantity import Quantity
from contracts.workload import Node, NodeTaint
from tests import builders

T = TypeVar("T")

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TEXT = st.text(max_size=8)
JSON: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INT64 | TEXT,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2)
    ),
    max_leaves=4,
)
LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True)
"""DNS labels."""
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def quantities() -> SearchStrategy[Quantity]:
    """Draw amounts in any notation."""
    suffixes = ["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]
    return st.builds(
        lambda number, suffix: Quantity.parse(f"{number}{suffix}"),
        st.decimals(0, 10**6, places=3) | st.integers(0, 10**12),
        st.sampled_from(suffixes),
    )


# --- anything at all ---------------------------------------------------------------


def of(kind: type[T]) -> SearchStrategy[T]:
    """Draw any value that the Struct can hold."""
    strategy: SearchStrategy[T] = _of(inspect.type_info(kind))
    return strategy


def _of(info: inspect.Type) -> SearchStrategy[Any]:
    match info:
        case inspect.StructType() if info.cls is DevicesAnnounced:
            return st.builds(_announced, pools=st.lists(pools(), max_size=2))
        case inspect.StructType() if info.cls is SubmitGang:
            return st.builds(_submitted, gang=gangs())
        case inspect.StructType():
            fields = {field.name: _of(field.type) for field in info.fields}
            return st.builds(info.cls, **fields)
        case inspect.VarTupleType():
            return st.lists(_of(info.item_type), max_size=2).map(tuple)
        case inspect.DictType():
            return st.dictionaries(TEXT, _of(info.value_type), max_size=2)
        case inspect.UnionType():
            return st.one_of([_of(member) for member in info.types])
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.EnumType():
            return st.sampled_from(list(info.cls))
        case inspect.CustomType():
            return quantities()
        case inspect.IntType():
            least = -(2**63) if info.ge is None else info.ge
            most = 2**63 - 1 if info.le is None else info.le
            return st.integers(min_value=least, max_value=most)
        case inspect.FloatType():
            return st.floats(info.ge, info.le, allow_nan=False, allow_infinity=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.StrType():
            return TEXT
        case inspect.NoneType():
            return st.none()
        case inspect.AnyType():
            return JSON
        case _:
            raise NotImplementedError(info)


def _announced(pools: list[ResourcePool]) -> DevicesAnnounced:
    different = {(pool.driver, pool.name): pool for pool in pools}
    return DevicesAnnounced(
        cluster=ClusterName("east"),
        node=NodeName(builders.NODE),
        pools=tuple(different.values()),
    )


def _submitted(gang: Gang) -> SubmitGang:
    uid = GangUID(gang.metadata.uid)
    return SubmitGang(cluster=ClusterName("east"), uid=uid, gang=gang)


# --- what the API server would take --------------------------------------------------


def attribute_values() -> SearchStrategy[builders.Value]:
    """Draw plain values of every kind, lists included."""
    versions = st.builds(
        lambda a, b, c: builders.Version(f"{a}.{b}.{c}"),
        *(st.integers(0, 30) for _ in range(3)),
    )
    scalars: list[SearchStrategy[Any]] = [
        st.integers(-3, 9),
        st.booleans(),
        st.sampled_from(["a100", "h100", "numa-0", ""]),
        versions,
    ]
    lists = [st.lists(item, min_size=1, max_size=3) for item in scalars]
    return st.one_of(*scalars, *lists)


def taints() -> SearchStrategy[DeviceTaint]:
    """Draw taints of every effect."""
    return st.builds(
        builders.taint,
        key=st.sampled_from(["example.com/broken", "hot"]),
        value=st.sampled_from(["", "yes"]),
        effect=st.sampled_from(["None", "NoSchedule", "NoExecute"]),
    )


def devices(name: str = "gpu-0") -> SearchStrategy[Device]:
    """Draw devices that differ in attributes, capacity and taints."""
    return st.builds(
        builders.device,
        name=st.just(name),
        attributes=st.dictionaries(IDENTIFIERS, attribute_values(), max_size=4),
        capacity=st.dictionaries(IDENTIFIERS, quantities(), max_size=2),
        taints=st.lists(taints(), max_size=2).map(tuple),
        allow_multiple_allocations=st.sampled_from([None, True]),
    )


def device_lists(max_size: int = 4) -> SearchStrategy[tuple[Device, ...]]:
    """Draw devices of different names."""
    sizes = st.integers(1, max_size)
    return sizes.flatmap(
        lambda size: st.tuples(*(devices(f"gpu-{index}") for index in range(size)))
    )


def pools() -> SearchStrategy[ResourcePool]:
    """Draw whole pools."""
    return st.builds(
        lambda content, name, generation: builders.pool(
            *content, name=name, generation=generation
        ),
        device_lists(),
        LABELS,
        st.integers(0, 9),
    )


def resource_slices() -> SearchStrategy[ResourceSlice]:
    """Draw slices for one node, some nodes or all nodes."""
    places: SearchStrategy[dict[str, Any]] = st.sampled_from(
        [
            {"node_name": NodeName("node-1")},
            {"all_nodes": True},
            {"node_selector": builders.node_selector(rack="r1")},
        ]
    )
    return st.builds(
        lambda content, pool, place: builders.resource_slice(
            *content, pool=pool, **place
        ),
        device_lists(),
        LABELS,
        places,
    )


def requests(name: str = "gpu") -> SearchStrategy[DeviceRequest]:
    """Draw exact requests, requests for all, and prioritized lists."""
    amounts: SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{}, {"count": 2}, {"count": 8}, {"mode": "All"}]
    )
    options: SearchStrategy[dict[str, Any]] = st.sampled_from(
        [
            {},
            {"select": ('device.attributes["gpu.example.com"].index < 4',)},
            {"tolerations": (builders.toleration(),)},
            {"capacity": {"memory": "10Gi"}},
        ]
    )
    both = st.builds(lambda amount, option: {**amount, **option}, amounts, options)
    exact = both.map(lambda fields: builders.request(name, **fields))
    lists = st.lists(both, min_size=1, max_size=3).map(
        lambda bodies: builders.request(
            name,
            first_available=[
                builders.sub_request(f"alternative-{index}", **fields)
                for index, fields in enumerate(bodies)
            ],
        )
    )
    return exact | lists


def request_lists(max_size: int = 3) -> SearchStrategy[tuple[DeviceRequest, ...]]:
    """Draw requests of different names."""
    return st.integers(1, max_size).flatmap(
        lambda size: st.tuples(*(requests(f"request-{index}") for index in range(size)))
    )


def claims() -> SearchStrategy[ResourceClaim]:
    """Draw claims with and without constraints and allocation."""
    constraints = st.lists(
        st.sampled_from(
            [
                builders.constraint(),
                builders.constraint("example.com/numa", "request-0"),
                builders.constraint(distinct="example.com/index"),
            ]
        ),
        max_size=2,
    )
    taken = builders.allocation(builders.result(request="request-0"))
    return st.builds(
        lambda wanted, limits, name, allocated: builders.claim(
            *wanted, name=name, constraints=limits, allocated=allocated
        ),
        request_lists(),
        constraints,
        LABELS,
        st.sampled_from([None, taken]),
    )


def device_classes() -> SearchStrategy[DeviceClass]:
    """Draw classes with and without an extended resource."""
    return st.builds(
        lambda name, resource: builders.device_class(
            name, extended_resource_name=resource
        ),
        LABELS,
        st.sampled_from([None, "example.com/gpu"]),
    )


def nodes() -> SearchStrategy[Node]:
    """Draw nodes, ready or not, in racks."""
    return st.builds(
        builders.node,
        name=LABELS,
        labels=st.dictionaries(st.just("rack"), LABELS, max_size=1),
        ready=st.sampled_from([True, False, None]),
        unschedulable=st.booleans(),
        taints=st.sampled_from(
            [(), (NodeTaint(key="spare", value="yes", effect="NoSchedule"),)]
        ),
    )


def members(name: str = "worker") -> SearchStrategy[Member]:
    """Draw equal pods with claims written out or by template."""
    written = request_lists(2).map(
        lambda wanted: builders.member_claim(*wanted, name="gpus")
    )
    template = st.just(builders.member_claim(name="nics", template="nic"))
    sets = st.one_of(written.map(lambda claim: (claim,)), st.tuples(written, template))
    return st.builds(
        lambda claims, count, asked: builders.member(
            *claims, name=name, count=count, **asked
        ),
        sets,
        st.integers(1, 16),
        asked_of_nodes(),
    )


def asked_of_nodes() -> SearchStrategy[dict[str, Any]]:
    """Draw what pods ask of nodes besides devices."""
    selector = {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [selector]}
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    options: list[dict[str, Any]] = [
        {},
        {"resources": {"cpu": "500m", "memory": "1Gi", "example.com/slot": 1}},
        {"node_selector": {"rack": "r1"}},
        {"tolerations": (NodeToleration(key="spare", operator="Exists"),)},
        {"affinity": {"nodeAffinity": {field: required}}},
    ]
    return st.lists(st.sampled_from(options), max_size=3).map(
        lambda parts: {key: value for part in parts for key, value in part.items()}
    )


def gangs() -> SearchStrategy[Gang]:
    """Draw gangs of one or two kinds of member."""
    pairs = st.tuples(members("worker")) | st.tuples(
        members("driver"), members("worker")
    )
    constraint = builders.gang_constraint(None, "worker/gpus/request-0")
    return st.builds(
        lambda group, name, priority, constraints, topology: builders.gang(
            *group,
            name=name,
            priority=priority,
            constraints=constraints,
            topology=topology,
        ),
        pairs,
        LABELS,
        st.integers(-5, 5),
        st.sampled_from([(), (constraint,)]),
        st.sampled_from([(), (builders.topology_rule(),)]),
    )
