"""What the API server refuses from 1.38 on is an error there and a warning before."""

from __future__ import annotations

import pytest

from contracts.codec import to_builtins
from contracts.features import Features, features_of
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from moorings.lint.findings import Finding, Severity
from moorings.lint.limits_of_138 import check_limits_of_138
from moorings.plan.objects import PlanObject
from tests import builders
from tests.builders.inputs import Json

NEW = features_of("1.38")


def find(value: WritableObject | Json, features: Features = NEW) -> list[Finding]:
    raw = value if isinstance(value, dict) else to_builtins(to_kubernetes(value))
    entry = PlanObject.of("x", raw, decode_object(raw))
    return list(check_limits_of_138(entry, features))


def asking(amounts: dict[str, str]) -> WritableObject:
    return builders.claim(builders.request(capacity=amounts))


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"Bad Name!": "1"}, '"Bad Name!": a valid C identifier'),
        ({"memory": "-1"}, "must be greater than or equal to 0"),
        ({f"c{number}": "1" for number in range(33)}, "must have at most 32 items"),
    ],
)
def test_requests_of_capacity(amounts: dict[str, str], message: str) -> None:
    (found,) = find(asking(amounts))
    assert message in found.message
    assert found.severity is Severity.ERROR
    (older,) = find(asking(amounts), Features())
    assert (older.severity, older.message) == (
        Severity.WARNING,
        f"{found.message}, from 1.38 on",
    )


def test_what_is_right_is_right() -> None:
    assert find(asking({"memory": "0", "gpu.example.com/memory": "1"})) == []


def test_what_results_consume() -> None:
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}
    results = [{**result, "consumedCapacity": {"memory": "-1"}}]
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "a", "namespace": "team-a"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    (found,) = find(raw)
    assert found.field == (
        "status.allocation.devices.results[0].consumedCapacity[memory]"
    )


@pytest.mark.parametrize(("terms", "count"), [(1, 0), (2, 1)])
def test_a_device_has_one_node_selector_term(terms: int, count: int) -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    device = {"name": "a", "nodeSelector": {"nodeSelectorTerms": [term] * terms}}
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "perDeviceNodeSelection": True,
            "devices": [device],
        },
    }
    assert len(find(raw)) == count
