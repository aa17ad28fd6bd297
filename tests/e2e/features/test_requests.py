"""What a request may say, from the claim to the pod that runs with its devices."""

from __future__ import annotations

import pytest

from tests.conftest import release
from tests.lab.bound import (
    asks,
    create_gang,
    device,
    exactly,
    model,
    run_gang,
    until_bound,
)
from tests.lab.cluster import gang_pod, is_running
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet, reservation
from tests.lab.waits import until_told


@pytest.mark.skipif(release() < "1.34", reason="DRAPrioritizedList is off before 1.34")
@pytest.mark.every_release
async def test_the_first_alternative_that_is_to_be_had_is_named(bare: Fleet) -> None:
    """One pod has the big device, the other the two small ones."""
    devices = [device("big", "big"), device("one", "small"), device("two", "small")]
    await bare.publish(objects.resource_slice(bare.driver, bare.a, devices))
    kinds = (("big", 1), ("small", 2))
    alternatives = [
        {
            "name": kind,
            "deviceClassName": bare.device_class,
            "selectors": model(bare, kind),
            "count": count,
        }
        for kind, count in kinds
    ]
    spec = asks({"name": "r", "firstAvailable": alternatives})
    pods = await run_gang(bare, "either", spec, 2)
    held = sorted([(r["request"], r["device"]) for r in p.results] for p in pods)
    assert held == [[("r/big", "big")], [("r/small", "one"), ("r/small", "two")]]


@pytest.mark.every_release
async def test_all_is_every_device_that_is_meant(bare: Fleet) -> None:
    """Of each node, whatever their number; others are left alone."""
    new = [device(f"new-{number}", "new") for number in range(3)]
    of_node = {bare.a: [*new, device("old", "old")], bare.b: new[:2]}
    for node, devices in of_node.items():
        await bare.publish(objects.resource_slice(bare.driver, node, devices))
    request = exactly(
        bare.device_class, allocationMode="All", selectors=model(bare, "new")
    )
    pods = await run_gang(bare, "all", asks(request), 2)
    held = {pod.node: sorted(pod.devices) for pod in pods}
    assert held == {bare.a: ["new-0", "new-1", "new-2"], bare.b: ["new-0", "new-1"]}


def opaque(site: Fleet, text: str) -> Json:
    return {"opaque": {"driver": site.driver, "parameters": {"says": text}}}


@pytest.mark.every_release
async def test_drivers_get_the_configuration_of_class_and_claim(bare: Fleet) -> None:
    """Classes first; an entry names its requests unless they are all.

    The parameters are written with spaces, as clients in Python do, which no patch of
    the claim keeps as they are.
    """
    configured = objects.device_class(f"{bare.namespace}-set", bare.driver)
    configured["spec"]["config"] = [opaque(bare, "class")]
    slice_ = objects.resource_slice(bare.driver, bare.a, objects.devices(2))
    await bare.publish(configured, slice_)
    requests = [
        exactly(configured["metadata"]["name"], "r"),
        exactly(bare.device_class, "s"),
    ]
    of_claim = [{**opaque(bare, "claim, s"), "requests": ["s"]}, opaque(bare, "claim")]
    (pod,) = await run_gang(bare, "set", asks(*requests, config=of_claim))
    assert pod.allocation["devices"]["config"] == [
        {"source": "FromClass", "requests": ["r"], **opaque(bare, "class")},
        {"source": "FromClaim", "requests": ["s"], **opaque(bare, "claim, s")},
        {"source": "FromClaim", **opaque(bare, "claim")},
    ]


async def test_a_gated_pod_shares_what_kube_scheduler_allocated(
    bare: Fleet, kube: Kube
) -> None:
    """Also where the claim's parameters are such, which the allocation repeats."""
    await bare.publish(objects.resource_slice(bare.driver, bare.a, objects.devices(1)))
    spec = asks(exactly(bare.device_class), config=[opaque(bare, "claim")])
    claim = await kube.create(objects.claim(bare.namespace, "shared", spec))
    first = await kube.until(await bare.create_pod("first", claim), is_running)
    allocation = (await kube.get(claim))["status"]["allocation"]
    gated = gang_pod(bare.namespace, "second", claims={"d": "shared"})
    second = await kube.until(await kube.create(gated), is_running)
    assert second["spec"]["nodeName"] == first["spec"]["nodeName"]
    status = (await kube.get(claim))["status"]
    assert status["allocation"] == allocation
    assert status["reservedFor"] == [reservation(first), reservation(second)]


async def test_a_tainted_device_is_for_requests_that_tolerate_it(
    bare: Fleet, kube: Kube
) -> None:
    """Drivers read in the result what is tolerated; others wait for the taint's end."""
    taint = {"key": "example.com/flaky", "value": "yes", "effect": "NoSchedule"}
    tainted = objects.resource_slice(
        bare.driver, bare.a, [device("flaky", taints=[taint])]
    )
    await bare.publish(tainted)
    strict = asks(exactly(bare.device_class))
    (waiting,) = await create_gang(bare, "strict", strict)
    await until_told(kube, waiting, "GangDevicesTainted")
    tolerations = [
        {"key": "example.com/flaky", "operator": "Exists", "effect": "NoSchedule"}
    ]
    lenient = asks(exactly(bare.device_class, tolerations=tolerations))
    (pod,) = await run_gang(bare, "lenient", lenient)
    assert pod.devices == ["flaky"]
    assert pod.results[0]["tolerations"] == tolerations
    bare.kubelets.finish(pod.pod)
    await kube.patch(tainted, {"spec": {"devices": objects.devices(1)}})
    (pod,) = await until_bound(bare, "strict")
    assert "tolerations" not in pod.results[0]


async def test_admin_access_is_beside_whoever_holds_the_device(
    bare: Fleet, kube: Kube
) -> None:
    """It says so in the result, and takes nothing."""
    labels = {"resource.kubernetes.io/admin-access": "true"}
    space = named("v1", "Namespace", bare.namespace)
    await kube.patch(space, {"metadata": {"labels": labels}})
    await bare.publish(objects.resource_slice(bare.driver, bare.a, objects.devices(1)))
    (pod,) = await run_gang(bare, "user", asks(exactly(bare.device_class)))
    watches = asks(exactly(bare.device_class, adminAccess=True))
    (admin,) = await run_gang(bare, "admin", watches)
    assert admin.devices == pod.devices
    told = [one.results[0].get("adminAccess") for one in (admin, pod)]
    assert told == [True, None]


async def test_constraints_hold_in_each_claim(bare: Fleet) -> None:
    """Both devices of a pod are below one root, in different slots."""
    place = {
        f"{root}-{slot}": {"root": {"string": root}, "slot": {"int": slot}}
        for root in "xy"
        for slot in (1, 2)
    }
    devices = [{"name": name, "attributes": has} for name, has in place.items()]
    await bare.publish(objects.resource_slice(bare.driver, bare.a, devices))
    constraints = [
        {"matchAttribute": f"{bare.driver}/root"},
        {"distinctAttribute": f"{bare.driver}/slot"},
    ]
    request = exactly(bare.device_class, count=2)
    pods = await run_gang(bare, "two", asks(request, constraints=constraints), 2)
    held = sorted(sorted(pod.devices) for pod in pods)
    assert held == [["x-1", "x-2"], ["y-1", "y-2"]]
