"""Objects of v1alpha2 and v1alpha3 as v1 says them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from contracts.alpha.convert import Converted, convert
from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import ResourceSlice
from contracts.kubernetes.decode import decode_object

CLASS = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata: {name: cats}
driverName: cats.example.com
"""
CLAIM = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec: {resourceClassName: cats}
"""


def _convert(*texts: str) -> list[Converted]:
    documents = [
        ("f", raw) for text in texts for raw in yaml.safe_load_all(text) if raw
    ]
    return list(convert(documents))


def _only(*texts: str) -> Any:
    """Return the last object, decoded as v1, in which nothing is unknown."""
    found = _convert(*texts)[-1]
    assert [str(remark) for remark in found.remarks] == []
    decoded = decode_object(found.value)
    assert decoded.unknown == ()
    return decoded.value


def _remarks(*texts: str) -> list[str]:
    return [str(r) for found in _convert(*texts) for r in found.remarks]


def test_a_resource_class_is_a_device_class_of_its_driver() -> None:
    """It has a driver and nothing else."""
    value = _only(CLASS)
    assert isinstance(value, DeviceClass)
    (selector,) = value.spec.selectors
    assert selector.cel is not None
    assert selector.cel.expression == 'device.driver == "cats.example.com"'


def test_a_claim_without_parameters_asks_for_one_device() -> None:
    """As the scheduler of 1.30 fills in what is not said."""
    value = _only(CLASS, CLAIM)
    assert isinstance(value, ResourceClaim)
    (request,) = value.spec.devices.requests
    assert request.exactly is not None
    assert request.exactly.device_class_name == "cats"


PARAMETERS = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimParameters
metadata: {name: p, namespace: ns}
generatedFrom: {apiGroup: cats.example.com, kind: CatParameters, name: black}
shareable: true
driverRequests:
- driverName: cats.example.com
  vendorParameters: {mood: good}
  requests:
  - namedResources: {selector: 'attributes.string["color"] == "black"'}
    vendorParameters: {toys: 2}
  - namedResources: {selector: "true"}
"""
REFERRING = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  resourceClassName: cats
  parametersRef: {apiGroup: GROUP, kind: KIND, name: NAME}
"""


@pytest.mark.parametrize(
    ("group", "kind", "name"),
    [
        ("cats.example.com", "CatParameters", "black"),
        ("resource.k8s.io", "ResourceClaimParameters", "p"),
    ],
)
def test_parameters_are_requests_with_selectors_and_config(
    group: str, kind: str, name: str
) -> None:
    """Found by what they were made from, or by their own name."""
    text = REFERRING.replace("GROUP", group).replace("KIND", kind)
    value = _only(CLASS, PARAMETERS, text.replace("NAME", name))
    first, second = value.spec.devices.requests
    assert (first.name, second.name) == ("req-0", "req-1")
    assert first.exactly.selectors[0].cel.expression == (
        'device.attributes["cats.example.com"].color == "black"'
    )
    assert second.exactly.selectors == ()
    config = [(c.requests, c.opaque.parameters) for c in value.spec.devices.config]
    assert config == [
        (("req-0",), {"toys": 2}),
        (("req-0", "req-1"), {"mood": "good"}),
    ]


def test_parameters_that_are_not_there_are_an_error() -> None:
    """A claim that asks for nothing known is not said as one that asks for anything."""
    text = REFERRING.replace("GROUP", "cats.example.com").replace("KIND", "Cat")
    found = _convert(CLASS, text.replace("NAME", "gone"))[-1]
    assert found.value is None
    (remark,) = found.remarks
    assert remark.is_error
    assert "--parameters-command" in remark.message


def test_a_request_of_another_driver_is_an_error() -> None:
    """In v1 the class would match no device of it."""
    parameters = PARAMETERS.replace("driverName: cats.", "driverName: dogs.")
    text = REFERRING.replace("GROUP", "cats.example.com").replace("NAME", "black")
    texts = _remarks(CLASS, parameters, text.replace("KIND", "CatParameters"))
    assert any("dogs.example.com" in each for each in texts)


def test_filters_of_a_class_count_for_their_driver_only() -> None:
    """Devices of other drivers are not refused by them."""
    parameters = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClassParameters
metadata: {name: p, namespace: ns}
filters:
- driverName: cats.example.com
  namedResources: {selector: 'attributes.bool["tame"]'}
vendorParameters:
- driverName: cats.example.com
  parameters: {food: fish}
"""
    text = CLASS + (
        "parametersRef: {apiGroup: resource.k8s.io, kind: ResourceClassParameters, "
        "name: p, namespace: ns}\n"
    )
    value = _only(parameters, text)
    assert value.spec.selectors[1].cel.expression == (
        'device.driver != "cats.example.com" || '
        '(device.attributes["cats.example.com"].tame)'
    )
    assert value.spec.config[0].opaque.parameters == {"food": "fish"}


def test_immediate_is_a_label() -> None:
    """v1 has no allocation mode."""
    immediate = CLAIM.replace("cats}", "cats, allocationMode: Immediate}")
    value = _only(CLASS, immediate)
    assert value.metadata.labels == {"moorings.dev/allocate": "Immediate"}
    template = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {resourceClassName: cats, allocationMode: Immediate}}
"""
    value = _only(CLASS, template)
    assert isinstance(value, ResourceClaimTemplate)
    assert value.spec.metadata.labels == {"moorings.dev/allocate": "Immediate"}


SLICE = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceSlice
metadata: {name: NAME}
nodeName: n1
driverName: cats.example.com
namedResources:
  instances:
  - name: NAME
    attributes:
    - {name: color, string: black}
    - {name: weight.kg, quantity: 5}
    - {name: lives, int: 9}
    - {name: tame, bool: true}
    - {name: version, version: 1.0.0}
    - {name: years, intSlice: {ints: [1, 2]}}
    - {name: toys, stringSlice: {strings: [ball]}}
"""


def test_slices_of_a_node_are_one_pool() -> None:
    """Each says how many the pool has, or none of it would count."""
    text = f"{SLICE.replace('NAME', 'a')}---{SLICE.replace('NAME', 'b')}"
    first, second = (decode_object(found.value).value for found in _convert(text))
    assert isinstance(first, ResourceSlice)
    assert isinstance(second, ResourceSlice)
    assert first.spec.pool == second.spec.pool
    assert first.spec.pool.resource_slice_count == 2
    (device,) = first.spec.devices
    assert set(device.attributes) == {
        "color",
        "lives",
        "tame",
        "version",
        "years",
        "toys",
    }
    assert device.attributes["years"].int_values == (1, 2)
    assert str(device.capacity["weight_kg"].value.text) == "5"


ALLOCATED = (
    CLAIM
    + """
status:
  driverName: cats.example.com
  allocation:
    resourceHandles:
    - driverName: cats.example.com
      structuredData:
        nodeName: n1
        vendorClaimParameters: {mood: good}
        results: [{namedResources: {name: a}}]
"""
)


def test_what_a_claim_holds_is_still_held() -> None:
    """Its device is not free."""
    value = _only(CLASS, ALLOCATED)
    (result,) = value.status.allocation.devices.results
    assert (result.driver, result.pool, result.device) == (
        "cats.example.com",
        "n1",
        "a",
    )


def test_devices_that_only_a_driver_knows_are_an_error() -> None:
    """Of classic DRA a claim says nothing but a driver's own data."""
    opaque = ALLOCATED.replace("structuredData:", "data: x\n      other:")
    found = _convert(CLASS, opaque)[-1]
    assert found.value is None
    assert "known to its driver only" in str(found.remarks[0])


def test_v1alpha3_says_what_it_loses() -> None:
    """Claims and classes had fields of classic DRA."""
    claim = """
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceClaim
metadata: {name: c}
spec:
  controller: cats.example.com
  devices: {requests: [{name: r, deviceClassName: cats, count: 2}]}
---
apiVersion: resource.k8s.io/v1alpha3
kind: DeviceClass
metadata: {name: cats}
spec: {suitableNodes: {nodeSelectorTerms: []}}
"""
    assert [text.partition(": v1")[0] for text in _remarks(claim)] == [
        "ResourceClaim c: spec.controller: cats.example.com",
        # An empty selector says nothing that could be lost.
        "DeviceClass cats: spec.suitableNodes",
    ]
    value: Any = decode_object(_convert(claim)[0].value).value
    assert value.spec.devices.requests[0].exactly.count == 2


def test_capacities_of_v1alpha3_are_plain_amounts() -> None:
    """In v1 each is a map with its value."""
    value = _only(
        """
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: cats.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: a, basic: {capacity: {weight: 5Gi}, attributes: {a: {int: 1}}}}]
"""
    )
    assert value.spec.devices[0].capacity["weight"].value.text == "5Gi"


def test_pods_name_their_claims_without_a_source() -> None:
    """Before 1.31 they did with one; others are left as they are."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "resourceClaims": [
                {"name": "a", "source": {"resourceClaimTemplateName": "t"}},
                {"name": "b", "resourceClaimName": "c"},
            ]
        },
    }
    (found,) = convert([("f", pod)])
    assert found.value["spec"]["resourceClaims"] == [
        {"name": "a", "resourceClaimTemplateName": "t"},
        {"name": "b", "resourceClaimName": "c"},
    ]
    (again,) = convert([("f", found.value)])
    assert again.value is found.value


def test_a_name_outside_of_metadata_is_named() -> None:
    """As it is printed in the documentation of 1.30."""
    text = CLASS.replace("metadata: {name: cats}", "name: cats")
    assert _remarks(text) == ["ResourceClass: name: belongs under metadata"]
