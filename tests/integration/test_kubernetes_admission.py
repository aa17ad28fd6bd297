"""What the API server refuses: admin access without a label, and what is too many."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.fleet import Fleet, allocated, runs

LABEL = "resource.kubernetes.io/admin-access"
NO_LABEL = (
    f"Forbidden: admin access to devices requires the `{LABEL}: true` label on the"
)


async def label(kube: Kube, namespace: str, value: str | None) -> None:
    patch = {"metadata": {"labels": {LABEL: value}}}
    await kube.patch(named("v1", "Namespace", namespace), patch)


async def test_admin_access_needs_a_label_on_the_namespace(
    kube: Kube, namespace: str
) -> None:
    """At creation of claims and templates, and again in an allocation.

    What was allocated under the label can be cleared without it.
    """
    site = Fleet(kube, namespace, ["a"])
    spec = objects.requests(site.device_class, adminAccess=True)
    claim = objects.claim(namespace, "c", spec)
    for thing in (claim, objects.template(namespace, "t", spec)):
        with pytest.raises(RefusedError) as no:
            await kube.create(thing)
        assert no.value.status == 422
        told = f"spec.devices.requests[0].adminAccess: {NO_LABEL} containing namespace"
        assert told in no.value.message
    await label(kube, namespace, "true")
    one, two = await kube.create(claim), await site.claim("two", adminAccess=True)
    one = await site.allocate(one, site.a, result={"adminAccess": True})
    await label(kube, namespace, None)
    with pytest.raises(RefusedError) as no:
        await site.allocate(two, site.a, result={"adminAccess": True})
    assert no.value.status == 422
    assert "status.allocation.devices.results[0].adminAccess" in no.value.message
    assert not allocated(await kube.update({**one, "status": {}}, "status"))


async def test_admin_access_takes_no_device_away(kube: Kube, namespace: str) -> None:
    """kube-scheduler gives an allocated device to an admin, and one that admins use."""
    async with fleet.running(kube, namespace, ["a"], objects.devices(1)) as site:
        await label(kube, namespace, "true")
        one = await site.claim("one")
        await kube.until(await site.create_pod("one", one), runs)
        admin = await site.claim("admin", adminAccess=True)
        await kube.until(await site.create_pod("admin", admin), runs)


def sliced(site: Fleet, count: int, **fields: Any) -> Json:
    devices = [{**device, **fields} for device in objects.devices(count)]
    return objects.resource_slice(site.driver, site.a, devices)


TAINT = {"taints": [{"key": "example.com/x", "effect": "NoSchedule"}]}
COUNTS = {"consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]}
BINDS = {
    "bindingConditions": ["example.com/ready"],
    "bindingFailureConditions": ["example.com/failed"],
}


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        (128, {}),
        (64, TAINT),
        (64, COUNTS),
        (128, BINDS),
        (128, {"allowMultipleAllocations": True}),
    ],
    ids=["plain", "taints", "counters", "binding-conditions", "shared"],
)
async def test_slice_holds_so_many_devices(
    kube: Kube, namespace: str, limit: int, fields: Json
) -> None:
    """128, but 64 where a device has taints or consumes counters, and only then."""
    site = Fleet(kube, namespace, ["a"])
    with pytest.raises(RefusedError) as no:
        await kube.create(sliced(site, limit + 1, **fields))
    assert no.value.status == 422
    told = f"spec.devices: Too many: {limit + 1}: must have at most {limit} items"
    assert told in no.value.message
    made = await kube.create(sliced(site, limit, **fields))
    await kube.delete(made)
