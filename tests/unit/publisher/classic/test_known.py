"""What is there of classic DRA, and what the bus is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import ContractsError
from contracts.names import ALLOCATE, IMMEDIATE
from publisher.classic.objects import V1ALPHA2
from publisher.gangs.view import GroupKey, group_of_claim
from publisher.kube.changes import Change
from tests.builders.classic import (
    CONTROLLER,
    ClassicWorld,
    classic_claim,
    classic_pod,
    context,
    lone,
    metadata,
    old_claim,
    resource_class,
)
from tests.builders.values import NAMESPACE

Json = dict[str, Any]
KEY = f"{NAMESPACE}/claim"


def old_slice(name: str, *devices: str) -> Json:
    """Make a slice of v1alpha2 on node `a`."""
    instances = [{"name": device} for device in devices]
    return {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceSlice",
        "metadata": metadata(name, ""),
        "nodeName": "a",
        "driverName": CONTROLLER,
        "namedResources": {"instances": instances},
    }


def test_changes_concern_the_gangs_of_their_pods() -> None:
    """A claim concerns whoever uses it, and itself."""
    world = ClassicWorld(classic_pod("pod", {"d": "claim"}))
    raw = classic_claim("claim")
    concerned = world.view.take(Change("ResourceClaim", KEY, raw))
    assert concerned == {lone("pod"), group_of_claim(KEY)}
    asked = context("pod", ["a"])
    key = f"{NAMESPACE}/pod"
    assert world.view.take(Change(asked["kind"], key, asked)) == {lone("pod")}


def test_a_pod_that_changes_its_gang_concerns_both() -> None:
    """Labels may be changed."""
    world = ClassicWorld(classic_pod("pod", {}))
    moved = classic_pod("pod", {}, gang="g")
    concerned = world.view.take(Change("Pod", f"{NAMESPACE}/pod", moved))
    assert concerned == {lone("pod"), GroupKey(NAMESPACE, "g")}
    assert list(world.view.groups()) == [GroupKey(NAMESPACE, "g")]


def test_a_pod_that_cannot_be_read_is_as_if_it_were_gone() -> None:
    """The other objects go on."""
    world = ClassicWorld(classic_pod("pod", {}))
    broken = classic_pod("pod", {}) | {"spec": {"containers": 3}}
    with pytest.raises(ContractsError):
        world.put(broken)
    assert list(world.view.groups()) == []


def test_an_old_state_does_not_replace_the_answer_to_our_write() -> None:
    """The watch may be behind."""
    old, new = classic_claim("claim"), classic_claim("claim", finalizers=["x"])
    world = ClassicWorld(new, old)
    claim = world.view.claim(KEY)
    assert claim is not None
    assert claim.finalizers == ("x",)
    other = classic_claim("claim", uid="another")
    world.put(other)
    assert world.view.claim(KEY) != claim


def test_claims_that_are_not_there_yet_are_lacking() -> None:
    """Unless the template makes none."""
    raw = classic_pod("pod", {"d": "claim"})
    world = ClassicWorld(raw)
    (pod,) = world.view.pods(lone("pod"))
    assert world.view.lacks_claims(pod)
    raw["status"]["resourceClaimStatuses"] = [{"name": "d"}]
    world.put(classic_pod("pod", {"d": "claim"}) | {"status": raw["status"]})
    (pod,) = world.view.pods(lone("pod"))
    assert not world.view.lacks_claims(pod)


def test_what_v1_cannot_say_is_named() -> None:
    """A vendor's own parameters are known to the vendor only."""
    raw = old_claim("claim")
    reference = {"apiGroup": "cats.example.com", "kind": "Cat", "name": "tom"}
    raw["spec"]["parametersRef"] = reference
    world = ClassicWorld(resource_class(), raw, version=V1ALPHA2)
    claim = world.view.claim(KEY)
    assert claim is not None
    assert claim.spec is None
    assert "Cat.cats.example.com tom" in claim.fault


def test_claims_with_structured_parameters_are_kube_schedulers() -> None:
    """Also where we are the driver, and after it has allocated them."""
    claim = old_claim("claim", mode=IMMEDIATE)
    world = ClassicWorld(claim, version=V1ALPHA2)
    world.put(resource_class(structuredParameters=True))
    assert list(world.view.groups()) == []
    world.put({**claim, "status": {"driverName": CONTROLLER}})
    assert list(world.view.groups()) == []


def test_the_class_says_whose_a_claim_of_v1alpha2_is() -> None:
    """It may come later, or be another driver's."""
    world = ClassicWorld(old_claim("claim", mode=IMMEDIATE), version=V1ALPHA2)
    assert list(world.view.groups()) == []
    world.put(resource_class("theirs.example.com"))
    claim = world.view.claim(KEY)
    assert claim is not None
    assert not claim.controller
    world.put(resource_class())
    assert list(world.view.groups()) == [group_of_claim(KEY)]
    claim = world.view.claim(KEY)
    assert claim is not None
    assert (claim.is_immediate, claim.is_pending) == (True, False)
    assert claim.spec is not None
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    assert request.exactly.device_class_name == "gpu"


def test_parameters_of_v1alpha2_say_what_is_asked_for_and_shared() -> None:
    """A claim whose parameters are not shareable has one pod at a time."""
    raw = old_claim("claim")
    reference = {"apiGroup": "resource.k8s.io", "kind": "ResourceClaimParameters"}
    raw["spec"]["parametersRef"] = reference | {"name": "p"}
    driver = {"driverName": CONTROLLER, "requests": [{"namedResources": {}}] * 2}
    parameters = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClaimParameters",
        "metadata": metadata("p"),
        "driverRequests": [driver],
    }
    world = ClassicWorld(resource_class(), raw, parameters, version=V1ALPHA2)
    claim = world.view.claim(KEY)
    assert claim is not None
    assert claim.spec is not None
    assert len(claim.spec.devices.requests) == 2
    assert not claim.is_shareable


def test_the_bus_is_told_what_claims_hold() -> None:
    """In v1, whoever allocated them."""
    results = [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]
    held = {"devices": {"results": results}, "controller": "theirs.example.com"}
    world = ClassicWorld()
    raw = classic_claim("claim", controller="", status={"allocation": held})
    (told,) = world.put(raw)
    assert told.object is not None
    assert told.object["apiVersion"] == "resource.k8s.io/v1"
    assert told.object["status"]["allocation"] == {"devices": {"results": results}}
    (gone,) = world.remove(raw)
    assert gone.object is None


def test_what_admins_hold_is_free() -> None:
    """The result does not say so before v1beta1."""
    results = [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]
    raw = classic_claim(
        "claim", status={"allocation": {"devices": {"results": results}}}
    )
    raw["spec"]["devices"]["requests"][0]["adminAccess"] = True
    (told,) = ClassicWorld().put(raw)
    assert told.object is not None
    (result,) = told.object["status"]["allocation"]["devices"]["results"]
    assert result == results[0] | {"adminAccess": True}


def test_the_bus_is_told_classes_of_v1alpha2_as_deviceclasses() -> None:
    """Again when their parameters come."""
    world = ClassicWorld(version=V1ALPHA2)
    raw = resource_class(
        parametersRef={
            "apiGroup": "resource.k8s.io",
            "kind": "ResourceClassParameters",
            "name": "p",
            "namespace": NAMESPACE,
        }
    )
    (told,) = world.put(raw)
    assert (told.kind, told.object) == ("DeviceClass", None)
    parameters = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClassParameters",
        "metadata": metadata("p"),
    }
    (told,) = world.put(parameters)
    assert told.object is not None
    assert told.object["kind"] == "DeviceClass"
    (gone,) = world.remove(raw)
    assert (gone.kind, gone.object) == ("DeviceClass", None)


def test_slices_of_a_pool_are_told_again_when_one_comes_or_goes() -> None:
    """Each says how many there are; v1alpha2 has no such field."""
    world = ClassicWorld(version=V1ALPHA2)
    (first,) = world.put(old_slice("one", "x"))
    told = world.put(second := old_slice("two", "y"))
    assert sorted(change.key for change in told) == ["one", "two"]
    counts = {change.object["spec"]["pool"]["resourceSliceCount"] for change in told}  # type: ignore[index]
    assert counts == {2}
    gone, left = world.remove(second)
    assert (gone.key, gone.object) == ("two", None)
    assert left.object is not None
    assert left.object["spec"]["pool"]["resourceSliceCount"] == 1
    versions = [
        int(change.object["metadata"]["resourceVersion"])
        for change in (first, told[0], left)
        if change.object is not None
    ]
    assert versions == sorted(set(versions))


def test_what_is_no_object_of_v1_is_not_told() -> None:
    """Contexts are between kube-scheduler and us; nodes go through as they are."""
    world = ClassicWorld()
    assert world.put(context("pod", ["a"])) == []
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata("a", "")}
    (told,) = world.put(node)
    assert told.object is node


def test_a_label_makes_a_claim_of_v1alpha3_immediate() -> None:
    """That version has no field for it; a claim of others stays theirs."""
    labels = {ALLOCATE: IMMEDIATE}
    world = ClassicWorld(classic_claim("claim", labels=labels))
    assert list(world.view.groups()) == [group_of_claim(KEY)]
    world = ClassicWorld(classic_claim("claim", labels=labels, controller=""))
    assert list(world.view.groups()) == []
