"""What is nearly ours is told from what is others'."""

from __future__ import annotations

import pytest

from contracts.kubernetes.decode import TYPES
from contracts.kubernetes.nearest import explain_unknown, explain_unknown_field


@pytest.mark.parametrize(
    ("api_version", "kind", "field", "reason"),
    [
        ("moorings.dev/v1", "Gang", "apiVersion", "v1alpha1 is"),
        ("moorings.dev/v1alpha1", "Gangs", "kind", "did you mean Gang?"),
        ("moorings.dev/v1alpha1", "gang", "kind", "did you mean Gang?"),
        ("moorings.dev/v1alpha1", "Pool", "kind", "Gang is"),
        ("resource.k8s.io/v1", "ResourceSlices", "kind", "mean ResourceSlice?"),
        ("resource.k8s.io/v1alpha3", "ResourceClaim", "apiVersion", "v1beta1 are"),
        ("resource.k8s.io/v1beta1", "DeviceTaintRule", "apiVersion", "v1alpha3 are"),
        (
            "resource.k8s.io/v1alpha2",
            "ResourceClass",
            "kind",
            "use DeviceClass",
        ),
        ("mooring.dev/v1alpha1", "Gang", "apiVersion", "mean moorings.dev/v1alpha1?"),
        ("v1", "resourceclaim", "apiVersion", "mean resource.k8s.io/v1?"),
    ],
)
def test_an_object_that_is_meant_for_us_is_explained(
    api_version: str, kind: str, field: str, reason: str
) -> None:
    """By the field to mend, and what would be read."""
    explained = explain_unknown(api_version, kind, TYPES)
    assert explained is not None
    assert explained[0] == field
    assert explained[1].endswith(reason)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
        ("scheduling.example.com/v1", "Gang"),
        ("apps/v2", "Pod"),
        ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest"),
        ("resource.k8s.io/v1alpha3", "PodSchedulingContext"),
        ("moorings.dev/v1alpha1", "Fleet"),
    ],
)
def test_what_decides_no_devices_is_left_alone(api_version: str, kind: str) -> None:
    assert explain_unknown(api_version, kind, TYPES) is None


def test_a_field_of_v1beta1_is_found_in_v1() -> None:
    """A claim whose apiVersion somebody raised by hand."""
    path = "spec.spec.devices.requests[1].selectors[0]"
    assert explain_unknown_field(path) == (
        "since v1beta2 it is at requests[1].exactly.selectors"
    )
    assert explain_unknown_field("spec.devices.requests[0].first") == ""
