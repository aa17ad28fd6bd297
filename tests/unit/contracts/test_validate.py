"""Every rule of the API server, broken one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.allocation import DeviceAllocationConfiguration, DeviceAllocationResult
from contracts.claim import (
    DerivedAttribute,
    DeviceConfiguration,
    DeviceRequest,
    DeviceSelector,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.gang import Gang, MemberClaim
from contracts.ids import DriverName, NodeName
from contracts.meta import ObjectMeta
from contracts.validate import Validated, validate
from tests.builders import (
    DRIVER,
    UID,
    Version,
    allocation,
    claim,
    claim_spec,
    claim_template,
    constraint,
    counter_set,
    device,
    device_class,
    devices,
    gang,
    gang_constraint,
    member,
    member_claim,
    node_selector,
    quantity,
    request,
    resource_slice,
    result,
    sub_request,
    taint,
    taint_rule,
    toleration,
    topology_level,
)


def texts(value: Validated) -> list[str]:
    return [str(violation) for violation in validate(value)]


def assert_broken(value: Validated, *beginnings: str) -> None:
    """Require exactly these violations, in order, by how they begin."""
    found = texts(value)
    assert len(found) == len(beginnings), found
    for text, beginning in zip(found, beginnings, strict=True):
        assert text.startswith(beginning), found


def test_violations_read_like_the_api_server() -> None:
    many = resource_slice(*devices(129))
    twice = resource_slice(device("a"), device("a"))
    effect = resource_slice(device(taints=(taint(effect="Never"),)))

    assert texts(many) == ["spec.devices: Too many: 129: must have at most 128 items"]
    assert texts(twice) == ['spec.devices[1]: Duplicate value: "a"']
    assert texts(effect) == [
        (
            'spec.devices[0].taints[0].effect: Unsupported value: "Never": '
            'supported values: "NoExecute", "NoSchedule", "None"'
        )
    ]
    assert texts(claim(DeviceRequest(name="gpu"))) == [
        (
            "spec.devices.requests[0]: Required value: "
            "exactly one of `exactly` or `firstAvailable` is required"
        )
    ]


@pytest.mark.parametrize(
    "value",
    [
        resource_slice(*devices(128)),
        resource_slice(*devices(64, taints=(taint(),))),
        resource_slice(all_nodes=True),
        resource_slice(node_selector=node_selector(rack="r1")),
        resource_slice(device(all_nodes=True), per_device_node_selection=True),
        resource_slice(counters=[counter_set("a"), counter_set("b")]),
        resource_slice(pool="rack-1.example.com/part/two"),
        resource_slice(device(attributes={"a.example.com/model": "x", "_b": True})),
        resource_slice(device(attributes={"v": Version("1.0.0-rc.1+build.5")})),
        resource_slice(device(attributes={"s": "x" * 64})),
        resource_slice(device(attributes={f"a{i}": i for i in range(32)})),
        claim(*(request(f"r{i}") for i in range(32))),
        claim(request(mode="All")),
        claim(request(first_available=[sub_request(f"s{i}") for i in range(8)])),
        claim(constraints=[constraint(None, "gpu")]),
        device_class(extended_resource_name="example.com/gpu"),
        taint_rule(driver=DRIVER, pool="a/b", device="gpu-0"),
        allocation(result(share_id=UID)),
    ],
)
def test_what_is_at_the_limit_is_accepted(value: Validated) -> None:
    assert texts(value) == []


@pytest.mark.parametrize(
    ("change", "beginning"),
    [
        ({"driver": ""}, "spec.driver: Required value"),
        ({"driver": "a" * 64}, "spec.driver: Too long: may not be more than 63 bytes"),
        ({"driver": "gpu_1"}, 'spec.driver: Invalid value: "gpu_1"'),
        ({"pool": "a//b"}, 'spec.pool.name: Invalid value: ""'),
        ({"pool": "A"}, 'spec.pool.name: Invalid value: "A"'),
        ({"pool": "a/" * 126 + "abc"}, "spec.pool.name: Too long"),
        ({"generation": -1}, "spec.pool.generation: Invalid value: -1"),
        ({"slice_count": 0}, "spec.pool.resourceSliceCount: Invalid value: 0"),
        ({"name": "Slice"}, 'metadata.name: Invalid value: "Slice"'),
        ({"node": "Node_1"}, 'spec.nodeName: Invalid value: "Node_1"'),
        ({"skip_node_operations": ("Sleep",)}, "spec.skipNodeOperations[0]: Unsupp"),
        (
            {"skip_node_operations": ("NodePrepareResources",)},
            "spec.skipNodeOperations: Invalid value",
        ),
        ({"partition_type_attribute": "a/b"}, "spec.partitionTypeAttribute: Invalid"),
    ],
)
def test_a_slice_with_a_broken_field_is_refused(
    change: dict[str, Any], beginning: str
) -> None:
    fields: dict[str, Any] = {"pool": "node-1", "name": "slice-1", **change}

    assert_broken(resource_slice(**fields), beginning)


@pytest.mark.parametrize(
    ("places", "beginnings"),
    [
        ({"node_name": None}, ["spec: Required value: exactly one of"]),
        (
            {"node_name": NodeName("a"), "all_nodes": True},
            ['spec: Invalid value: "`nodeName`, `allNodes`": exactly one of'],
        ),
        (
            {"node_name": NodeName("")},
            ["spec.nodeName: Invalid value", "spec: Required value"],
        ),
        (
            {"all_nodes": False},
            ["spec.allNodes: Invalid value: false", "spec: Required value"],
        ),
        (
            {"node_selector": NodeSelector()},
            [
                "spec.nodeSelector.nodeSelectorTerms: Required value",
                "spec.nodeSelector.nodeSelectorTerms: Invalid value: 0",
            ],
        ),
    ],
)
def test_a_slice_says_its_nodes_in_exactly_one_way(
    places: dict[str, Any], beginnings: list[str]
) -> None:
    assert_broken(resource_slice(**places), *beginnings)


def test_devices_say_their_nodes_exactly_if_the_slice_leaves_it_to_them() -> None:
    silent = resource_slice(device(), per_device_node_selection=True)
    both = device(node_name=NodeName("a"), all_nodes=True)
    twice = resource_slice(both, per_device_node_selection=True)
    unasked = resource_slice(device(all_nodes=True))

    assert_broken(silent, "spec.devices[0]: Required value")
    assert_broken(twice, "spec.devices[0]: Invalid value")
    assert_broken(unasked, 'spec.devices[0]: Invalid value: "`allNodes`"')


def test_devices_with_features_are_limited_to_64() -> None:
    limit = "spec.devices: Too many: 65: must have at most 64 items"

    assert_broken(resource_slice(*devices(65, taints=(taint(),))), limit)
    assert_broken(resource_slice(*devices(65, attributes={"a": [1]})), limit)
    assert_broken(resource_slice(*devices(65, consumes={"c": {"m": 1}})), limit)


def test_counter_sets_live_in_their_own_slices() -> None:
    shared = resource_slice(device(), counters=[counter_set()])
    many = resource_slice(counters=[counter_set(f"c{i}") for i in range(9)])
    twice = resource_slice(counters=[counter_set("a"), counter_set("a")])
    counters = {f"c{i}": 1 for i in range(33)}
    big = resource_slice(counters=[counter_set("a", **counters)])
    empty = resource_slice(counters=[replace(counter_set("a"), counters={})])

    assert_broken(shared, 'spec: Invalid value: "": only one of')
    assert_broken(many, "spec.sharedCounters: Too many: 9")
    assert_broken(twice, 'spec.sharedCounters[1]: Duplicate value: "a"')
    assert_broken(big, "spec.sharedCounters[0].counters: Too many: 33")
    assert_broken(empty, "spec.sharedCounters[0].counters: Required value")


@pytest.mark.parametrize(
    ("broken", "beginning"),
    [
        (device("GPU"), '.name: Invalid value: "GPU"'),
        (device("g" * 64), ".name: Invalid value"),
        (device(""), ".name: Required value"),
        (device(attributes={"a/b/c": 1}), '.attributes: Invalid value: "a/b/c"'),
        (device(attributes={"/b": 1}), '.attributes: Invalid value: "/b"'),
        (device(attributes={"a/": 1}), '.attributes: Invalid value: "a/"'),
        (device(attributes={"a-b": 1}), '.attributes: Invalid value: "a-b"'),
        (device(attributes={"a" * 33: 1}), ".attributes: Too long: may not be more th"),
        (device(attributes={"s": "x" * 65}), ".attributes[s].string: Too long"),
        (device(attributes={"s": "é" * 33}), ".attributes[s].string: Too long"),
        (device(attributes={"v": Version("1.0")}), ".attributes[v].version: Invalid v"),
        (device(attributes={"v": Version("01.0.0")}), ".attributes[v].version: Inv"),
        (device(attributes={"v": [Version("x")]}), ".attributes[v].versions[0]: Inv"),
        (device(attributes={"i": 2**63}), ".attributes[i].int: Invalid value"),
        (device(attributes={f"a{i}": i for i in range(33)}), ": Invalid value: 33"),
        (device(attributes={"a": list(range(49))}), ": Invalid value: 49"),
        (
            device(capacity={f"c{i}": 1 for i in range(33)}),
            ": Invalid value: 33: the total number of attributes and capacities",
        ),
        (device(taints=(taint(),) * 17), ".taints: Too many: 17"),
        (device(taints=(taint(key=""),)), '.taints[0].key: Invalid value: ""'),
        (device(taints=(taint(value="a b"),)), ".taints[0].value: Invalid value"),
        (device(taints=(taint(effect=""),)), ".taints[0].effect: Required value"),
        (
            device(consumes={f"c{i}": {"m": 1} for i in range(3)}),
            ".consumesCounters: Too many: 3",
        ),
        (device(consumes={"c": {}}), ".consumesCounters[0].counters: Required value"),
        (device(consumes={"c": {"M": 1}}), ".consumesCounters[0].counters: Invalid"),
        (device(binding_conditions=("A",)), ".bindingFailureConditions: Invalid value"),
        (
            device(
                binding_conditions=tuple("abcde"), binding_failure_conditions=("F",)
            ),
            ".bindingConditions: Too many: 5",
        ),
        (
            device(binding_conditions=("A",), binding_failure_conditions=("A",)),
            '.bindingFailureConditions[0]: Invalid value: "A": must not overlap',
        ),
    ],
)
def test_a_broken_device_is_refused(broken: Device, beginning: str) -> None:
    assert_broken(resource_slice(broken), f"spec.devices[0]{beginning}")


@pytest.mark.parametrize(
    ("attribute", "beginning"),
    [
        (DeviceAttribute(), 'x]: Invalid value: "": exactly one value'),
        (DeviceAttribute(int_value=1, bool_value=True), 'x]: Invalid value: "int, boo'),
        (DeviceAttribute(int_values=()), 'x].ints: Invalid value: "[]": must not be'),
    ],
)
def test_an_attribute_has_exactly_one_value(
    attribute: DeviceAttribute, beginning: str
) -> None:
    broken = replace(device(), attributes={"x": attribute})

    assert_broken(resource_slice(broken), f"spec.devices[0].attributes[{beginning}")


def shared(policy: CapacityRequestPolicy, *, shareable: bool = True) -> Validated:
    memory = DeviceCapacity(value=quantity("10"), request_policy=policy)
    is_shareable = True if shareable else None
    return resource_slice(
        device(capacity={"m": memory}, allow_multiple_allocations=is_shareable)
    )


def values(default: str | None, *options: str) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(
        default=None if default is None else quantity(default),
        valid_values=tuple(quantity(option) for option in options),
    )


def limits(default: str | None, **bounds: str) -> CapacityRequestPolicy:
    amounts = {name: quantity(amount) for name, amount in bounds.items()}
    return CapacityRequestPolicy(
        default=None if default is None else quantity(default),
        valid_range=CapacityRequestPolicyRange(**amounts),
    )


@pytest.mark.parametrize(
    ("policy", "beginning"),
    [
        (values(None, "1"), "default: Required value"),
        (values("1", "2", "1"), 'validValues[1]: Invalid value: "1": values must be s'),
        (values("1", "1", "1000m"), 'validValues[1]: Duplicate value: "1000m"'),
        (values("1", "1", "11"), 'validValues[1]: Invalid value: "11": option is larg'),
        (values("3", "1", "2"), 'validValues: Invalid value: "3": default value is no'),
        (values("1", *(["1"] * 11)), "validValues: Too many: 11"),
        (limits(None, min="1"), "default: Required value"),
        (limits("1", max="5"), "validRange.min: Required value"),
        (limits("20", min="11"), 'validRange.min: Invalid value: "11": min is larger'),
        (limits("1", min="-1"), 'validRange.min: Invalid value: "-1"'),
        (limits("1", min="2"), 'validRange.default: Invalid value: "1": default is le'),
        (limits("1", min="1", max="11"), 'validRange.max: Invalid value: "11"'),
        (limits("6", min="1", max="5"), "validRange.default: Invalid value"),
        (limits("1", min="1", step="0"), 'validRange.step: Invalid value: "0"'),
        (limits("1", min="1", step="10"), 'validRange.step: Invalid value: "10"'),
        (limits("2", min="1", step="2"), 'validRange.step: Invalid value: "2": value'),
        (
            limits("1", min="1", max="4", step="2"),
            'validRange.step: Invalid value: "4": value is not a multiple',
        ),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(
    policy: CapacityRequestPolicy, beginning: str
) -> None:
    path = "spec.devices[0].capacity[m].requestPolicy"

    assert_broken(shared(policy), f"{path}.{beginning}")


def test_a_policy_has_one_way_and_a_shareable_device() -> None:
    fine = limits("1500m", min="500m", max="2500m", step="500m")
    both = replace(fine, valid_values=(quantity("1"),))
    path = "spec.devices[0].capacity[m].requestPolicy"

    assert_broken(shared(fine))
    assert_broken(shared(fine, shareable=False), f"{path}: Forbidden")
    assert_broken(shared(both), f"{path}: Forbidden")


def test_a_partition_type_is_a_string_of_each_device_with_counters() -> None:
    def judged(**attributes: Any) -> Validated:
        part = device("a", consumes={"c": {"m": 1}}, attributes=attributes)
        name = f"{DRIVER}/profile"
        return resource_slice(part, device("b"), partition_type_attribute=name)

    place = f"spec.devices[0].attributes[{DRIVER}/profile]"
    assert_broken(judged(profile="1g"))
    assert_broken(judged(), f"{place}: Required value")
    assert_broken(judged(profile=1), f"{place}: Invalid value")


def requirement(key: str, operator: str, *items: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=items)


@pytest.mark.parametrize(
    ("term", "beginning"),
    [
        (
            {"match_expressions": (requirement("a", "In"),)},
            "Expressions[0].values: Req",
        ),
        (
            {"match_expressions": (requirement("a", "Exists", "b"),)},
            "Expressions[0].val",
        ),
        (
            {"match_expressions": (requirement("a", "Gt", "1", "2"),)},
            "Expressions[0].v",
        ),
        (
            {"match_expressions": (requirement("a", "Is", "b"),)},
            "Expressions[0].operat",
        ),
        ({"match_expressions": (requirement("a b", "Exists"),)}, "Expressions[0].key"),
        (
            {"match_expressions": (requirement("a", "In", "-"),)},
            "Expressions[0].values[",
        ),
        ({"match_fields": (requirement("a", "In", "b"),)}, "Fields[0].key: Invalid"),
        (
            {"match_fields": (requirement("metadata.name", "In", "a", "b"),)},
            "Fields[0].values: Required",
        ),
        (
            {"match_fields": (requirement("metadata.name", "Exists"),)},
            "Fields[0].operator: Invalid",
        ),
    ],
)
def test_a_node_selector_that_cannot_be_evaluated_is_refused(
    term: dict[str, Any], beginning: str
) -> None:
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(**term),))
    path = "spec.nodeSelector.nodeSelectorTerms[0].match"

    assert_broken(resource_slice(node_selector=selector), f"{path}{beginning}")


@pytest.mark.parametrize(
    ("fields", "beginning"),
    [
        ({"device_class": ""}, "deviceClassName: Required value"),
        ({"device_class": "A"}, "deviceClassName: Invalid value"),
        ({"mode": ""}, "allocationMode: Unsupported value"),
        ({"mode": "Some"}, "allocationMode: Unsupported value"),
        ({"count": 0}, "count: Invalid value: 0: must be greater than zero"),
        ({"mode": "All", "count": 1}, "count: Invalid value: 1: must not be specified"),
        ({"select": ("true",) * 33}, "selectors: Too many: 33"),
        ({"select": ("",)}, "selectors[0].cel.expression: Required value"),
        ({"select": ("x" * 10_241,)}, "selectors[0].cel.expression: Too long"),
        ({"selectors": (DeviceSelector(),)}, "selectors[0].cel: Required value"),
        ({"tolerations": (toleration(),) * 17}, "tolerations: Too many: 17"),
        (
            {"tolerations": (DeviceToleration(key="a"),)},
            "tolerations[0].operator: Required value",
        ),
        (
            {"tolerations": (toleration(value="x"),)},
            'tolerations[0].value: Invalid value: "x": must be empty',
        ),
        (
            {"tolerations": (toleration(effect="Soon"),)},
            "tolerations[0].effect: Unsupported value",
        ),
        (
            {"derived_attributes": (DerivedAttribute(name="a/b", expression="1"),)},
            'derivedAttributes[0].name: Invalid value: "a/b"',
        ),
    ],
)
def test_a_broken_request_is_refused_in_both_forms(
    fields: dict[str, Any], beginning: str
) -> None:
    given = dict(fields)
    whole = given.pop("selectors", None)
    exact, sub = request(**given), sub_request(**given)
    if whole is not None:
        assert isinstance(exact.exactly, ExactDeviceRequest)
        exact = replace(exact, exactly=replace(exact.exactly, selectors=whole))
        sub = replace(sub, selectors=whole)
    path = "spec.devices.requests[0]"

    assert_broken(claim(exact), f"{path}.exactly.{beginning}")
    assert_broken(
        claim(request(first_available=[sub])), f"{path}.firstAvailable[0].{beginning}"
    )
    assert_broken(claim_template(exact), f"spec.{path}.exactly.{beginning}")


def test_requests_are_few_and_have_names_of_their_own() -> None:
    path = "spec.devices.requests"
    many = claim(*(request(f"r{i}") for i in range(33)))
    both = replace(request(), first_available=(sub_request(),))
    subs = claim(request(first_available=[sub_request("a"), sub_request("a")]))
    nine = claim(request(first_available=[sub_request(f"s{i}") for i in range(9)]))

    assert_broken(many, f"{path}: Too many: 33")
    assert_broken(claim(request(), request()), f'{path}[1]: Duplicate value: "gpu"')
    assert_broken(claim(request("GPU")), f"{path}[0].name: Invalid value")
    assert_broken(claim(both), f"{path}[0]: Invalid value")
    assert_broken(subs, f'{path}[0].firstAvailable[1]: Duplicate value: "a"')
    assert_broken(nine, f"{path}[0].firstAvailable: Too many: 9")


def test_constraints_name_one_attribute_and_existing_requests() -> None:
    listed = request("list", first_available=[sub_request("a")])

    def judged(*given: Any) -> Validated:
        return claim(request(), listed, constraints=given)

    both = replace(constraint(), distinct_attribute=constraint().match_attribute)
    neither = replace(constraint(), match_attribute=None)
    path = "spec.devices.constraints"
    assert_broken(judged(constraint(None, "gpu", "list", "list/a")))
    assert_broken(judged(both), f"{path}[0]: Invalid value")
    assert_broken(judged(neither), f"{path}[0]: Required value")
    assert_broken(judged(constraint("bare")), f"{path}[0].matchAttribute: Invalid")
    for unknown in ("nic", "gpu/a", "list/b", "list/a/b"):
        broken = judged(constraint(None, unknown))
        assert_broken(broken, f'{path}[0].requests[0]: Invalid value: "{unknown}"')
    assert_broken(
        judged(constraint(None, "gpu", "gpu")), f"{path}[0].requests[1]: Duplicate"
    )
    assert_broken(judged(*[constraint()] * 33), f"{path}: Too many: 33")


@pytest.mark.parametrize(
    ("driver", "parameters", "beginning"),
    [
        ("", {}, ".driver: Required value"),
        (DRIVER, None, ".parameters: Required value"),
        (DRIVER, [], ".parameters: Invalid value"),
        (DRIVER, {"a": "x" * 10_240}, ".parameters: Too long"),
    ],
)
def test_configuration_needs_a_driver_and_an_object(
    driver: str, parameters: Any, beginning: str
) -> None:
    opaque = OpaqueDeviceConfiguration(driver=DriverName(driver), parameters=parameters)
    config = (DeviceConfiguration(opaque=opaque),)

    assert_broken(claim(config=config), f"spec.devices.config[0].opaque{beginning}")
    assert_broken(device_class(config=config), f"spec.config[0].opaque{beginning}")


@pytest.mark.parametrize(
    "name", ["gpu", "kubernetes.io/gpu", "requests.example.com/gpu", "example.com/a b"]
)
def test_a_name_that_is_no_extended_resource_is_refused(name: str) -> None:
    broken = device_class(extended_resource_name=name)

    assert_broken(broken, f'spec.extendedResourceName: Invalid value: "{name}"')


def test_objects_have_names() -> None:
    nameless = replace(claim(), metadata=ObjectMeta())
    generated = replace(claim(), metadata=ObjectMeta(generate_name="gpu-"))

    assert_broken(nameless, "metadata.name: Required value")
    assert_broken(generated)


def test_a_taint_rule_selects_by_valid_names() -> None:
    broken = taint_rule(taint(key="a b"), driver="A B", pool="", device="X")

    assert_broken(
        broken,
        "spec.deviceSelector.driver: Invalid value",
        "spec.deviceSelector.pool: Required value",
        "spec.deviceSelector.device: Invalid value",
        "spec.taint.key: Invalid value",
    )


def test_an_allocation_is_whole() -> None:
    broken = result("X", request="", driver="", pool="", share_id=UID.upper())
    config = DeviceAllocationConfiguration(source="Nowhere")
    whole = DeviceAllocationResult(results=(broken,), config=(config,))
    path = "allocation.devices"

    assert_broken(
        replace(allocation(), devices=whole),
        f"{path}.results[0].request: Required value",
        f"{path}.results[0].driver: Required value",
        f"{path}.results[0].pool: Required value",
        f"{path}.results[0].device: Invalid value",
        f"{path}.results[0].shareID: Invalid value",
        f'{path}.config[0].source: Unsupported value: "Nowhere"',
        f"{path}.config[0].opaque: Required value",
    )
    assert_broken(allocation(*[result()] * 33), f"{path}.results: Too many: 33")


def test_an_allocation_answers_the_requests_of_its_claim() -> None:
    path = "status.allocation.devices.results[0].request"

    assert_broken(claim(allocated=allocation()))
    assert_broken(claim(allocated=allocation(result(request="nic"))), path)


def test_reservations_need_an_allocation_and_whole_references() -> None:
    pod = ResourceClaimConsumerReference(resource="pods", name="p", uid=UID)

    def judged(*consumers: ResourceClaimConsumerReference, **fields: Any) -> Validated:
        status = ResourceClaimStatus(reserved_for=consumers, **fields)
        return replace(claim(), status=status)

    many = [replace(pod, uid=str(index)) for index in range(257)]
    path = "status.reservedFor"
    assert_broken(judged(pod, allocation=allocation()))
    assert_broken(judged(pod), f"{path}: Forbidden")
    assert_broken(judged(pod, pod, allocation=allocation()), f"{path}[1]: Duplicate")
    assert_broken(judged(*many, allocation=allocation()), f"{path}: Too many: 257")
    nobody = ResourceClaimConsumerReference(resource="pods")
    assert_broken(
        judged(nobody, allocation=allocation()),
        f"{path}[0].name: Required value",
        f"{path}[0].uid: Required value",
    )


@pytest.mark.parametrize(
    ("fields", "beginnings"),
    [
        ({}, []),
        ({"device": "gpu-9"}, [": Invalid value"]),
        ({"conditions": [{}] * 9}, [".conditions: Too many: 9"]),
        ({"data": {"a": "x" * 10_240}}, [".data: Too long"]),
        ({"networkData": {"ips": ["::1/128"] * 17}}, [".networkData.ips: Too many"]),
        (
            {"networkData": {"interfaceName": "e" * 257}},
            [".networkData.interfaceName: Too long"],
        ),
    ],
)
def test_drivers_report_only_allocated_devices_within_limits(
    fields: dict[str, Any], beginnings: list[str]
) -> None:
    reported = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0", **fields}
    status = ResourceClaimStatus(allocation=allocation(), devices=(reported,))

    assert_broken(
        replace(claim(), status=status),
        *(f"status.devices[0]{beginning}" for beginning in beginnings),
    )


@pytest.mark.parametrize(
    ("broken", "beginning"),
    [
        (Gang(metadata=ObjectMeta(name="g")), "spec.members: Required value"),
        (gang(name="g" * 64), "metadata.name: Invalid value"),
        (gang(member(name="W")), "spec.members[0].name: Invalid value"),
        (gang(member(count=0)), "spec.members[0].count: Invalid value: 0"),
        (gang(member(count=5001)), "spec.members: Invalid value: 5001"),
        (gang(member(), member()), 'spec.members[1]: Duplicate value: "worker"'),
        (
            gang(member(member_claim(), member_claim())),
            'spec.members[0].claims[1]: Duplicate value: "gpus"',
        ),
        (
            gang(member(member_claim(name="a_b"))),
            'spec.members[0].claims[0].name: Invalid value: "a_b"',
        ),
        (
            gang(member(MemberClaim(name="gpus"))),
            "spec.members[0].claims[0]: Required value",
        ),
        (
            gang(member(member_claim(template="t", claim="c"))),
            "spec.members[0].claims[0]: Invalid value",
        ),
        (
            gang(member(member_claim(request(), template="t"))),
            "spec.members[0].claims[0]: Invalid value",
        ),
        (
            gang(member(member_claim(request(count=0)))),
            "spec.members[0].claims[0].spec.devices.requests[0].exactly.count",
        ),
        (gang(member(resources={"cpu": -1})), "spec.members[0].node.resources[cpu]"),
        (
            gang(member(node_selector={"a": "b c"})),
            "spec.members[0].node.nodeSelector[a]: Invalid value",
        ),
        (
            gang(topology=(topology_level(mode="Maybe"),)),
            "spec.topology[0].mode: Unsup",
        ),
        (gang(topology=(topology_level(),) * 2), "spec.topology[1]: Duplicate value"),
        (gang(topology=(topology_level(""),)), "spec.topology[0].key: Invalid value"),
        (gang(recovery="Pray"), 'spec.recovery: Unsupported value: "Pray"'),
        (gang(weight=-1), "spec.weight: Invalid value: -1"),
        (
            gang(constraints=(gang_constraint(scope="Rack"),)),
            "spec.constraints[0].scope: Unsupported value",
        ),
        (
            gang(constraints=(gang_constraint("rail"),)),
            "spec.constraints[0].matchAttribute: Invalid value",
        ),
        (
            gang(constraints=(gang_constraint("a/b", distinct="a/b"),)),
            "spec.constraints[0]: Invalid value",
        ),
        *(
            (
                gang(constraints=(gang_constraint(None, entry),)),
                f'spec.constraints[0].requests[0]: Invalid value: "{entry}": {reason}',
            )
            for entry, reason in {
                "worker": "must be member/claim/request",
                "driver/gpus/gpu": "there is no member driver",
                "worker/nics/gpu": "member worker has no claim nics",
                "worker/gpus/nic": "claim gpus has no request nic",
            }.items()
        ),
    ],
)
def test_a_broken_gang_is_refused(broken: Gang, beginning: str) -> None:
    assert_broken(broken, beginning)


def test_a_claim_of_a_member_is_written_out_or_named() -> None:
    named = MemberClaim(name="gpus", spec=claim_spec(), claim_name="gpus-1")
    template = member_claim(template="gpus")
    unknown = gang_constraint(None, "worker/gpus/anything")

    assert_broken(gang(member(named)))
    assert_broken(gang(member(member_claim(claim="gpus-1"))))
    assert_broken(gang(member(template), constraints=(unknown,)))
