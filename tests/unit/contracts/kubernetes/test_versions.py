"""The shapes of served versions, as parsed JSON: values move, and none is judged."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.kubernetes.versions import from_v1, to_v1

FLAT = {
    "name": "gpu",
    "deviceClassName": "gpu.example.com",
    "allocationMode": "ExactCount",
    "count": 2,
}
EXACT = {"name": "gpu", "exactly": {k: v for k, v in FLAT.items() if k != "name"}}


def claim_of(request: dict[str, Any]) -> dict[str, Any]:
    """Make the JSON of a claim with one request."""
    return {"kind": "ResourceClaim", "spec": {"devices": {"requests": [request]}}}


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_a_version_of_the_same_shape_is_left_as_it_is(version: str) -> None:
    """Only v1beta1 is reshaped; the very object comes back."""
    raw = claim_of(EXACT)
    assert to_v1("ResourceClaim", version, raw, []) is raw
    assert from_v1("ResourceClaim", version, raw) is raw


def test_what_v1beta1_does_not_have_is_reported_by_its_path() -> None:
    """A field of another version is unknown, wherever it stands."""
    unknown: list[str] = []
    to_v1("ResourceClaim", "v1beta1", claim_of(FLAT | {"exactly": {}}), unknown)
    device = {"name": "a", "attributes": {}, "basic": {"name": "b"}}
    raw = {"spec": {"devices": [device]}}
    converted = to_v1("ResourceSlice", "v1beta1", raw, unknown)
    assert unknown == [
        "spec.devices.requests[0].exactly",
        "spec.devices[0].attributes",
        "spec.devices[0].basic.name",
    ]
    assert converted["spec"]["devices"] == [{"name": "a"}]


@pytest.mark.parametrize("raw", [{}, {"spec": None}, {"spec": {"devices": 1}}])
def test_what_is_not_there_is_not_made(raw: dict[str, Any]) -> None:
    """An object without requests stays without."""
    assert to_v1("ResourceClaim", "v1beta1", raw, []) == raw
