"""What Kubernetes 1.38 decides otherwise, asked of a plan for both releases.

Each right answer was seen on kube-scheduler 1.37.1 and 1.38.0-beta.0.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.builders.inputs import Json

DRIVER = "gpu.example.com"
HALVES = {"default": "1", "validRange": {"min": "500m", "step": "500m"}}


def gpu(number: int, **fields: Any) -> Json:
    return {"name": f"gpu-{number}", **fields}


def decide(release: str, devices: list[Json], spec: Json, *held: Json) -> Json:
    """Decide one claim on one node; `held` are results of another claim."""
    meta = {"name": "a", "namespace": "default"}
    claim = {"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": spec}}
    other = {
        "kind": "ResourceClaim",
        "metadata": {"name": "held", "namespace": "default"},
        "spec": {"devices": {}},
        "status": {"allocation": {"devices": {"results": held}}},
    }
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    slice_ = {
        "kind": "ResourceSlice",
        "metadata": {"name": "n"},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": devices},
    }
    kind = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    objects = [
        {"apiVersion": "resource.k8s.io/v1", **each}
        for each in (kind, slice_, claim, *([other] if held else []))
    ]
    line = {"id": "a", "kubernetesVersion": release, "objects": objects}
    with SelectorEvaluator() as evaluator:
        (answer,) = plan_lines([json.dumps(line).encode()], Planner(evaluator))
    (planned,) = json.loads(answer)["claims"]
    found: Json = planned
    return found


def requested(count: int = 1, **fields: Any) -> Json:
    exactly = {"deviceClassName": "gpu", "count": count, **fields}
    return {"requests": [{"name": "r", "exactly": exactly}]}


def results(planned: Json) -> list[Json]:
    found: list[Json] = (planned.get("allocation") or {"devices": {"results": []}})[
        "devices"
    ]["results"]
    return found


SHARED = gpu(0, allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})


@pytest.mark.parametrize(("release", "amount"), [("1.37", None), ("1.38", "10Gi")])
def test_a_capacity_may_be_asked_for_with_the_domain_of_its_driver(
    release: str, amount: str | None
) -> None:
    asked = requested(capacity={"requests": {f"{DRIVER}/memory": "10Gi"}})
    found = results(decide(release, [SHARED], asked))
    consumed = [each["consumedCapacity"] for each in found]
    assert consumed == ([] if amount is None else [{"memory": amount}])


def test_what_shares_consume_adds_up_however_it_is_spelled() -> None:
    place = {"request": "x", "driver": DRIVER, "pool": "n", "device": "gpu-0"}
    held = [
        {**place, "shareID": f"{number}", "consumedCapacity": {name: "40Gi"}}
        for number, name in enumerate(("memory", f"{DRIVER}/memory"))
    ]
    asked = requested(capacity={"requests": {"memory": "1Gi"}})
    assert results(decide("1.38", [SHARED], asked, held[0]))
    assert not results(decide("1.38", [SHARED], asked, *held))


def test_one_capacity_is_not_asked_for_by_two_names() -> None:
    both = {"memory": "1Gi", f"{DRIVER}/memory": "1Gi"}
    asked = requested(capacity={"requests": both})
    assert not results(decide("1.38", [SHARED], asked))


@pytest.mark.parametrize(("release", "amount"), [("1.37", "2"), ("1.38", "1500m")])
def test_ranges_are_fractional(release: str, amount: str) -> None:
    units = {"units": {"value": "10", "requestPolicy": HALVES}}
    device = gpu(0, allowMultipleAllocations=True, capacity=units)
    asked = requested(capacity={"requests": {"units": "1200m"}})
    (found,) = results(decide(release, [device], asked))
    assert found["consumedCapacity"] == {"units": amount}


@pytest.mark.parametrize(
    ("release", "constraint", "is_met"),
    [
        ("1.37", "matchAttribute", False),
        ("1.37", "distinctAttribute", True),
        ("1.38", "matchAttribute", True),
        ("1.38", "distinctAttribute", False),
    ],
)
def test_build_metadata_does_not_tell_versions_apart(
    release: str, constraint: str, *, is_met: bool
) -> None:
    devices = [
        gpu(number, attributes={"firmware": {"version": f"1.0.0+{build}"}})
        for number, build in enumerate("ab")
    ]
    asked = requested(2) | {"constraints": [{constraint: f"{DRIVER}/firmware"}]}
    assert bool(results(decide(release, devices, asked))) == is_met


def test_a_share_is_never_given_out_as_the_whole_device() -> None:
    """Though its driver lets nobody share it any more."""
    place = {"request": "x", "driver": DRIVER, "pool": "n", "device": "gpu-0"}
    held = {**place, "shareID": "1", "consumedCapacity": {"memory": "40Gi"}}
    for release in ("1.37", "1.38"):
        assert not results(decide(release, [gpu(0)], requested(), held))
