"""What the API server refuses in a pod: references to claims, amounts of resources."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.shapes import read
from contracts.validate.pods import check_pod_spec, is_extended_resource
from contracts.workload import PodSpec

GPU = "example.com/gpu"


def violations(**spec: Any) -> list[str]:
    """Read a pod's spec, and say what is wrong with it."""
    return [str(found) for found in check_pod_spec(read(spec, PodSpec, "pod", []))]


def of_resources(**resources: Any) -> list[str]:
    """Check a container with these resources."""
    return violations(containers=[{"name": "c", "resources": resources}])


@pytest.mark.parametrize("amount", ["3", "3000m", "3Ki", "1e3", "0", "999.9m", "3.0"])
def test_whole_numbers_of_an_extended_resource_are_taken(amount: str) -> None:
    """Rounded up to thousandths, as the API server reads them."""
    assert of_resources(limits={GPU: amount}) == []
    assert of_resources(limits={GPU: amount}, requests={GPU: amount}) == []


@pytest.mark.parametrize("amount", ["0.5", "1500m", "1m", "1n", "2.0001"])
def test_parts_of_an_extended_resource_are_refused(amount: str) -> None:
    (text,) = of_resources(limits={GPU: amount})
    field = f"spec.containers[0].resources.limits[{GPU}]"
    assert text == f'{field}: Invalid value: "{amount}": must be an integer'


def test_parts_of_what_kubernetes_counts_are_taken() -> None:
    amounts = {"cpu": "500m", "memory": "1.5Gi"}
    assert of_resources(requests=amounts) == []
    assert of_resources(limits=amounts) == []


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"requests": {GPU: 1}},
            (
                "limits: Required value: Limit must be set for non overcommitable "
                f"resources: {GPU}"
            ),
        ),
        (
            {"requests": {GPU: 1}, "limits": {GPU: 2}},
            f'requests: Invalid value: "1": must be equal to {GPU} limit of 2',
        ),
        (
            {"requests": {"cpu": 2}, "limits": {"cpu": 1}},
            (
                'requests: Invalid value: "2": must be less than or equal to '
                "cpu limit of 1"
            ),
        ),
        (
            {"requests": {"cpu": -1}},
            'requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"requests": {"hugepages-2Mi": "2Mi"}},
            (
                "limits: Required value: Limit must be set for non overcommitable "
                "resources: hugepages-2Mi"
            ),
        ),
    ],
)
def test_requests_and_limits_must_agree(resources: Any, text: str) -> None:
    assert of_resources(**resources) == [f"spec.containers[0].resources.{text}"]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ({}, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        (
            {"resourceClaimName": "c", "resourceClaimTemplateName": "t"},
            (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` "
                "may be specified"
            ),
        ),
    ],
)
def test_a_claim_is_by_name_or_by_template(claim: Any, text: str) -> None:
    found = violations(resourceClaims=[{"name": "gpu", **claim}])
    assert found == [f'spec.resourceClaims[0]: Invalid value: "gpu": {text}']


def test_claims_have_different_names_that_are_labels() -> None:
    one = {"name": "gpu", "resourceClaimName": "c"}
    (text,) = violations(resourceClaims=[one, one])
    assert text == 'spec.resourceClaims[1]: Duplicate value: "gpu"'
    for name in ("", "GPU"):
        (text,) = violations(resourceClaims=[{**one, "name": name}])
        assert text.startswith("spec.resourceClaims[0].name: ")
    (text,) = violations(resourceClaims=[{**one, "resourceClaimName": "C"}])
    assert text.startswith("spec.resourceClaims[0].resourceClaimName: Invalid value")


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_containers_refer_to_claims_of_the_pod(field: str) -> None:
    claims = [{"name": "gpu", "resourceClaimName": "c"}]

    def of(*references: Any) -> list[str]:
        container = {"name": "c", "resources": {"claims": list(references)}}
        return violations(resourceClaims=claims, **{field: [container]})

    assert of({"name": "gpu"}) == []
    assert of({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}) == []
    place = f"spec.{field}[0].resources.claims"
    rule = "must be one of the names in pod.spec.resourceClaims"
    assert of({"name": "nic"}) == [f'{place}[0]: Not found: "nic": {rule}']
    assert of({"request": "a"}) == [f"{place}[0]: Required value"]
    twice = of({"name": "gpu", "request": "a"}, {"name": "gpu"})
    assert twice == [f'{place}[1]: Duplicate value: "gpu"']


@pytest.mark.parametrize(
    ("name", "is_extended"),
    [
        (GPU, True),
        ("cpu", False),
        ("requests.example.com/gpu", False),
        ("deviceclass.resource.kubernetes.io/gpu", False),
    ],
)
def test_extended_resources_have_a_domain_of_their_own(
    name: str, is_extended: bool
) -> None:
    assert is_extended_resource(name) is is_extended
