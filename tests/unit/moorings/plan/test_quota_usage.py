"""What claims and pods use of ResourceQuotas, as Kubernetes' evaluators count it."""

from __future__ import annotations

import pytest

from contracts.claim import DeviceRequest
from contracts.features import Features
from moorings.plan.quota_usage import (
    CLAIMS,
    ClaimUsage,
    count_all_stored,
    count_limited,
    is_counted,
)
from tests.builders import (
    allocation,
    claim,
    device_class,
    request,
    sub_request,
)
from tests.builders.inputs import Json, entries, generated_claim, written_pod

GPU, BIG = "gpu", "big"
NAMED = "example.com/gpu"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io"
STORED = {"uid": "u", "resourceVersion": "1"}
NO_EXTENDED = Features(extended_resource=False)


def devices(of: str) -> str:
    return f"{of}.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ([request(device_class=GPU)], {GPU: 1}),
        ([request(device_class=GPU, count=3)], {GPU: 3}),
        ([request(device_class=GPU, mode="All")], {GPU: 32}),
        (
            [
                request(
                    first_available=[
                        sub_request("a", device_class=BIG),
                        sub_request("b", device_class=GPU, count=2),
                        sub_request("c", device_class=GPU, count=4),
                    ]
                )
            ],
            {BIG: 1, GPU: 4},
        ),
        ([request("a", device_class=GPU), request("b", device_class=GPU)], {GPU: 2}),
    ],
)
def test_a_claim_uses_devices_by_class(
    asked: list[DeviceRequest], used: dict[str, int]
) -> None:
    stored = claim(*asked, uid="u")
    counted = ClaimUsage([], NO_EXTENDED).count_stored(stored)
    assert counted == {CLAIMS: 1, **{devices(of): n for of, n in used.items()}}


def test_a_claim_uses_the_extended_resource_of_its_class() -> None:
    """By the name of the class, and by the resource that the class names."""
    served = device_class(GPU)
    values = [entries(served)[0].decoded.value]
    counted = ClaimUsage(values, Features()).count_stored(
        claim(request(device_class=GPU, count=2), uid="u")
    )
    assert counted == {CLAIMS: 1, devices(GPU): 2, f"{IMPLICIT}/{GPU}": 2}


def stored_used(*objects: Json) -> dict[str, int]:
    raw_class: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": GPU},
        "spec": {"extendedResourceName": NAMED},
    }
    values = [entry.decoded.value for entry in entries(raw_class, *objects)]
    (used,) = count_all_stored(values, ClaimUsage(values, Features())).values()
    return dict(used)


def extended_pod(phase: str = "Running") -> Json:
    pod = written_pod("p", live=True, phase=phase)
    amounts = {NAMED: "2"}
    resources = {"requests": amounts, "limits": amounts}
    pod["spec"]["containers"][0]["resources"] = resources
    return pod


def extended_claim() -> Json:
    spec = {
        "devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": GPU, "count": 2}}]
        }
    }
    made: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "team-a", **STORED},
        "spec": spec,
    }
    owned = generated_claim(made, "p")
    note = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return {**owned, "metadata": {**owned["metadata"], "annotations": note}}


def test_a_pod_and_the_claim_of_its_extended_resource_count_once() -> None:
    of_pod = {"pods": 1, "count/pods": 1, f"requests.{NAMED}": 2}
    assert stored_used(extended_pod()) == of_pod
    assert stored_used(extended_pod(), extended_claim()) == {
        **of_pod,
        CLAIMS: 1,
        devices(GPU): 2,
        f"{IMPLICIT}/{GPU}": 2,
    }


def test_a_pod_that_ended_is_only_an_object() -> None:
    assert stored_used(extended_pod("Succeeded")) == {"count/pods": 1}


def test_only_what_a_cluster_has_is_used() -> None:
    """A claim that is allocated is there, whatever its manifest leaves out."""
    held = claim(request(device_class=GPU), name="held", allocated=allocation())
    values = [held, claim(request(device_class=GPU), name="new")]
    (used,) = count_all_stored(values, ClaimUsage(values, NO_EXTENDED)).values()
    assert used == {CLAIMS: 1, devices(GPU): 1}


@pytest.mark.parametrize(
    ("name", "counts", "said"),
    [
        (CLAIMS, True, "2 ResourceClaims are"),
        ("pods", True, "2 pods are"),
        ("count/pods", True, "2 pods are"),
        (devices(GPU), True, f"2 of {GPU} are"),
        (f"requests.{NAMED}", True, f"2 of requests.{NAMED} are"),
        (f"{IMPLICIT}/{GPU}", True, f"2 of {IMPLICIT}/{GPU} are"),
        ("requests.pod.alpha.kubernetes.io/opaque-int-resource-foo", False, ""),
        ("requests.cpu", False, ""),
        ("limits.memory", False, ""),
        ("requests.storage", False, ""),
        (f"{GPU}.storageclass.storage.k8s.io/requests.storage", False, ""),
        ("count/jobs.batch", False, ""),
    ],
)
def test_what_is_counted(name: str, *, counts: bool, said: str) -> None:
    assert is_counted(name) is counts
    if counts:
        assert count_limited(name, 2) == said
