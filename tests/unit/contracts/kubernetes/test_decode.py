"""Reading and writing Kubernetes objects of every version."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from contracts.claim import ResourceClaim
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.errors import DecodeError, UnknownKindError
from contracts.kubernetes.decode import (
    V1,
    V1ALPHA3,
    V1BETA1,
    V1BETA2,
    decode_object,
    flatten,
    to_kubernetes,
)
from contracts.workload import Node, Pod
from tests import builders

DEVICE = {
    "attributes": {"model": {"string": "a100"}, "index": {"int": 0}},
    "capacity": {"memory": {"value": "80Gi"}},
    "taints": [{"key": "example.com/hot", "effect": "NoSchedule"}],
    "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}],
}
EXACTLY = {
    "deviceClassName": "gpu.example.com",
    "selectors": [{"cel": {"expression": "true"}}],
    "allocationMode": "ExactCount",
    "count": 2,
    "adminAccess": False,
    "tolerations": [{"operator": "Exists"}],
    "capacity": {"requests": {"memory": "10Gi"}},
}
ALTERNATIVES = [{"name": "big", "deviceClassName": "gpu.example.com", "count": 1}]


def slice_of(version: str, **spec: Any) -> dict[str, Any]:
    flat = {"name": "gpu-0", **DEVICE}
    basic = {"name": "gpu-0", "basic": DEVICE}
    return {
        "apiVersion": version,
        "kind": "ResourceSlice",
        "metadata": {"name": "slice-1"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "node-1", "generation": 3, "resourceSliceCount": 1},
            "nodeName": "node-1",
            "devices": [basic if version == V1BETA1 else flat],
            **spec,
        },
    }


def claim_of(version: str) -> dict[str, Any]:
    exact = EXACTLY if version == V1BETA1 else {"exactly": EXACTLY}
    return {
        "apiVersion": version,
        "kind": "ResourceClaim",
        "metadata": {"name": "claim-1", "namespace": "team-a"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "one", **exact},
                    {"name": "any", "firstAvailable": ALTERNATIVES},
                ]
            }
        },
    }


def template_of(version: str) -> dict[str, Any]:
    claim = claim_of(version)
    spec = {"metadata": {"labels": {"a": "b"}}, "spec": claim["spec"]}
    return {**claim, "kind": "ResourceClaimTemplate", "spec": spec}


@pytest.mark.parametrize("of", [slice_of, claim_of, template_of])
def test_all_versions_of_one_object_are_equal(of: Any) -> None:
    """One object is one value, whatever version it was served in."""
    v1, v1beta2, v1beta1 = (decode_object(of(v)) for v in (V1, V1BETA2, V1BETA1))

    assert v1.value == v1beta2.value == v1beta1.value
    assert v1.unknown == v1beta2.unknown == v1beta1.unknown == ()


@pytest.mark.parametrize("of", [slice_of, claim_of, template_of])
@pytest.mark.parametrize("version", [V1, V1BETA2, V1BETA1])
def test_what_is_written_is_what_was_read(of: Any, version: str) -> None:
    """Nothing is added and nothing is lost."""
    raw = of(version)

    assert to_kubernetes(decode_object(raw).value, version) == raw  # type: ignore[arg-type] # all three can be written


def test_reading_leaves_the_input_alone() -> None:
    """Whoever hands JSON in still has it as it was."""
    raw = slice_of(V1BETA1, nodeName="", allNodes=True)
    before = copy.deepcopy(raw)

    decode_object(raw)

    assert raw == before


def test_v1beta1_says_empty_and_false_for_unset() -> None:
    """In v1 the same values are kept, to be judged."""
    slice_v1beta1 = decode_object(slice_of(V1BETA1, nodeName="", allNodes=False)).value
    slice_v1 = decode_object(slice_of(V1, nodeName="", allNodes=False)).value

    assert isinstance(slice_v1beta1, ResourceSlice)
    assert isinstance(slice_v1, ResourceSlice)
    assert slice_v1beta1.spec.node_name is None
    assert slice_v1beta1.spec.all_nodes is None
    assert slice_v1.spec.node_name == ""
    assert slice_v1.spec.all_nodes is False


@pytest.mark.parametrize(
    ("flat", "has_exactly"),
    [
        ({}, False),
        ({"count": 0, "allocationMode": "", "deviceClassName": ""}, False),
        ({"adminAccess": False}, True),
        ({"selectors": []}, True),
        ({"selectors": None}, False),
        ({"count": 1}, True),
        ({"capacity": {}}, True),
    ],
)
def test_v1beta1_request_is_exact_if_any_flat_field_is_set(
    flat: dict[str, Any], has_exactly: bool
) -> None:
    """As Go's conversion has it."""
    raw = claim_of(V1BETA1)
    raw["spec"]["devices"]["requests"] = [{"name": "gpu", **flat}]

    claim = decode_object(raw).value

    assert isinstance(claim, ResourceClaim)
    assert (claim.spec.devices.requests[0].exactly is not None) is has_exactly


def test_a_v1beta1_device_without_body_has_no_attributes() -> None:
    """It is a device all the same."""
    value = decode_object(slice_of(V1BETA1, devices=[{"name": "gpu-0"}])).value

    assert isinstance(value, ResourceSlice)
    assert value.spec.devices == (builders.device("gpu-0"),)


def test_invalid_values_are_kept() -> None:
    """Reading judges nothing: validation does."""
    request = {"name": "gpu", "exactly": {}, "firstAvailable": [{}, {}]}
    raw = claim_of(V1)
    raw["spec"]["devices"]["requests"] = [request, request]
    conditions: dict[str, Any] = {"name": "gpu-0", "bindingConditions": []}

    claim = decode_object(raw).value
    published = decode_object(slice_of(V1, devices=[conditions])).value

    assert isinstance(claim, ResourceClaim)
    assert len(claim.spec.devices.requests) == 2
    first = claim.spec.devices.requests[0]
    assert first.exactly is not None
    assert first.exactly.allocation_mode == ""
    assert len(first.first_available) == 2
    assert isinstance(published, ResourceSlice)
    assert published.spec.devices[0].binding_conditions == ()
    assert published.spec.devices[0].binding_failure_conditions is None


def test_the_field_that_1_37_replaced_is_dropped() -> None:
    """It is known, so it is not reported either."""
    old = {"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores"}}}

    v1 = decode_object(slice_of(V1, devices=[{"name": "gpu-0", **old}]))
    v1beta1 = decode_object(
        slice_of(V1BETA1, devices=[{"name": "gpu-0", "basic": old}])
    )

    assert v1.unknown == v1beta1.unknown == ()
    assert v1.value == v1beta1.value


def test_unknown_fields_are_named_as_written() -> None:
    """By the path in the version that was read."""
    v1 = claim_of(V1)
    v1["spec"]["devices"]["requests"][0]["deviceClassName"] = "gpu.example.com"
    v1beta1 = claim_of(V1BETA1)
    v1beta1["spec"]["devices"]["requests"][0] |= {"colour": 1, "exactly": {}}
    device = {
        "name": "gpu-0",
        "attributes": {},
        "basic": {"attributes": {}, "wings": 2},
    }
    published = slice_of(V1BETA1, devices=[device], lid="open")

    request = "spec.devices.requests[0]"
    assert decode_object(v1).unknown == (f"{request}.deviceClassName",)
    assert set(decode_object(v1beta1).unknown) == {
        f"{request}.exactly",
        f"{request}.colour",
    }
    assert set(decode_object(published).unknown) == {
        "spec.lid",
        "spec.devices[0].attributes",
        "spec.devices[0].basic.wings",
    }


def test_unknown_fields_are_found_in_lists_and_maps() -> None:
    """But not where only excerpts are read."""
    raw = slice_of(V1)
    raw["spec"]["devices"][0]["attributes"] = {"model": {"string": "a", "float": 1.5}}
    raw["metadata"] |= {"managedFields": [], "selfLink": "x"}
    raw["status"] = {"new": True}

    assert decode_object(raw).unknown == ("spec.devices[0].attributes[model].float",)


def test_nulls_are_absent() -> None:
    """As Go reads them."""
    raw = slice_of(V1, sharedCounters=None, allNodes=None)
    raw["metadata"] |= {"labels": {"a": None}, "creationTimestamp": None}

    value = decode_object(raw).value

    assert isinstance(value, ResourceSlice)
    assert value.spec.shared_counters == ()
    assert value.metadata.labels == {"a": ""}


@pytest.mark.parametrize(
    ("version", "change", "message"),
    [
        (V1, {"driver": 7}, "ResourceSlice slice-1: spec.driver: Expected `str`"),
        (
            V1,
            {"devices": [{"name": "a", "capacity": {"x": {"value": "4 GB"}}}]},
            "ResourceSlice slice-1: spec.devices[0].capacity[x].value: '4 GB'",
        ),
        (
            V1BETA1,
            {"devices": [{"name": "a", "basic": {"attributes": {"x": {"int": "1"}}}}]},
            "ResourceSlice slice-1: spec.devices[0].basic.attributes[x].int: Expected",
        ),
        (V1, {"devices": {}}, "ResourceSlice slice-1: spec.devices: Expected `array`"),
        (V1, {"pool": {}}, "spec.pool: Object missing required field `name`"),
    ],
)
def test_errors_name_the_object_and_the_field(
    version: str, change: dict[str, Any], message: str
) -> None:
    """Whoever wrote it can find the place."""
    with pytest.raises(DecodeError) as raised:
        decode_object(slice_of(version, **change))

    assert message in str(raised.value)


@pytest.mark.parametrize("raw", [None, [], "text", 4])
def test_what_is_no_object_is_refused(raw: Any) -> None:
    """With an error of ours."""
    with pytest.raises(DecodeError):
        decode_object(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"kind": "Pod"},
        {"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClaim"},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
        {"apiVersion": V1ALPHA3, "kind": "ResourceSlice"},
    ],
)
def test_unknown_kinds_and_versions_are_refused(raw: dict[str, Any]) -> None:
    """Nothing is guessed."""
    with pytest.raises(UnknownKindError):
        decode_object(raw)


@pytest.mark.parametrize("version", [V1ALPHA3, V1BETA2, V1])
def test_taint_rules_are_read_in_every_version(version: str) -> None:
    """They are served in versions of their own."""
    value = builders.taint_rule(driver="gpu.example.com")

    decoded = decode_object(to_kubernetes(value, version))

    assert isinstance(decoded.value, DeviceTaintRule)
    assert decoded.value == value


def test_a_version_without_the_kind_is_not_written() -> None:
    """The error names the version."""
    with pytest.raises(UnknownKindError, match="v1beta1"):
        to_kubernetes(builders.taint_rule(), V1BETA1)


def test_a_gang_keeps_its_own_version() -> None:
    """It is no object of resource.k8s.io."""
    raw = to_kubernetes(builders.gang(), V1BETA1)

    assert raw["apiVersion"] == "moorings.dev/v1alpha1"
    assert decode_object(raw).value == builders.gang()


def test_fields_that_the_api_requires_are_written_at_zero() -> None:
    """Left out they would be refused."""
    raw = to_kubernetes(builders.resource_slice(generation=0, slice_count=0))

    pool = {"name": "node-1", "generation": 0, "resourceSliceCount": 0}
    assert raw["spec"]["pool"] == pool


def test_lists_are_flattened_and_their_items_typed() -> None:
    """Items of a typed list need not say what they are."""
    claim = claim_of(V1)
    untyped = {key: claim[key] for key in ("metadata", "spec")}
    typed = {"apiVersion": V1, "kind": "ResourceClaimList", "items": [untyped]}
    nested = {"apiVersion": "v1", "kind": "List", "items": [typed, slice_of(V1)]}

    kinds = [decode_object(raw).kind for raw in flatten(nested)]

    assert kinds == ["ResourceClaim", "ResourceSlice"]
    assert list(flatten(claim)) == [claim]
    assert list(flatten({"kind": "List", "items": None})) == []


@pytest.mark.parametrize("items", ["x", {"a": 1}, [1], [None]])
def test_lists_of_no_objects_are_refused(items: Any) -> None:
    """The error names the items."""
    with pytest.raises(DecodeError, match="items"):
        list(flatten({"kind": "List", "items": items}))


def test_nodes_and_pods_are_read_as_far_as_needed() -> None:
    """The rest is neither read nor reported."""
    node = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "node-1", "labels": {"rack": "r1"}},
            "spec": {"unschedulable": True, "podCIDR": "10.0.0.0/24"},
            "status": {
                "allocatable": {"cpu": "8", "memory": "32Gi"},
                "conditions": [{"type": "Ready", "status": "Unknown", "reason": "x"}],
                "images": [],
            },
        }
    )
    pod = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "busybox",
                        "resources": {
                            "requests": {"cpu": 1, "memory": "1Gi"},
                            "claims": [{"name": "gpu", "request": "one"}],
                        },
                    }
                ],
                "initContainers": [{"name": "side", "restartPolicy": "Always"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
                "schedulingGates": [{"name": "moorings.dev/allocation"}],
                "volumes": [],
            },
        }
    )

    assert isinstance(node.value, Node)
    assert node.value.is_ready is False
    assert node.value.spec.unschedulable
    assert node.value.status.allocatable == builders.quantities(
        {"cpu": 8, "memory": "32Gi"}
    )
    assert isinstance(pod.value, Pod)
    spec = pod.value.spec
    assert spec.containers[0].resources.claims[0].request == "one"
    assert spec.init_containers[0].restart_policy == "Always"
    assert spec.resource_claims[0].resource_claim_template_name == "t"
    assert spec.scheduling_gates[0].name == "moorings.dev/allocation"
    assert node.unknown == pod.unknown == ()
