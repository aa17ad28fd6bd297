"""What the API server takes as a claim's status, and what not.

With the other `test_kubernetes_*` modules this is what we know of Kubernetes itself:
each test is named after what it shows and runs on the real thing. Left out, as no
control plane can show it: what kubelet does (it deletes a node's slices when it starts
and when a driver stays away; before 1.36 it fails a pod with a prepared shared claim
and another one; its metric is_error was inverted) and what the Go library of drivers
does (it deletes all slices of its driver that it does not know).
"""

from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest

from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import FINALIZER, Fleet, allocated

STRANGER = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def site(kube: Kube, namespace: str) -> Fleet:
    """Names of a fleet without the fleet: nobody checks that it exists."""
    return Fleet(kube, namespace, ["a", "b"])


def marker(number: int = 1) -> Json:
    """Reserve for something that no part of Kubernetes knows or removes."""
    return {
        "apiGroup": "example.com",
        "resource": "markers",
        "name": f"m{number}",
        "uid": f"00000000-0000-0000-0000-{number:012}",
    }


async def test_allocation_is_set_or_cleared_never_changed(
    kube: Kube, site: Fleet
) -> None:
    """Only from nothing to something and back."""
    claim = await site.allocate(await site.claim("c"), site.a)
    other = deepcopy(claim)
    other["status"]["allocation"] = site.allocation(site.a, "dev-1")
    with pytest.raises(RefusedError) as no:
        await kube.update(other, "status")
    assert no.value.status == 422
    assert "status.allocation: Invalid value" in no.value.message
    assert "field cannot be modified once set" in no.value.message
    claim["status"] = {}
    assert not allocated(await kube.update(claim, "status"))


async def test_no_patch_keeps_parameters_as_their_author_wrote_them(
    kube: Kube, site: Fleet
) -> None:
    """They are compared byte by byte: a patch of something else changes the spec.

    This client writes spaces, and puts the same spaces back when it replaces the claim.
    """
    spec = objects.requests(site.device_class)
    parameters = {"b": 1, "a": 2}
    opaque = {"driver": site.driver, "parameters": parameters}
    spec["devices"]["config"] = [{"opaque": opaque}]
    claim = await kube.create(objects.claim(site.namespace, "c", spec))
    annotated = {"metadata": {"annotations": {"a": "b"}}}
    json_patch = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
    for patch in (annotated, json_patch):
        with pytest.raises(RefusedError, match=r"spec: .*immutable"):
            await kube.patch(claim, patch)
    claim["metadata"]["annotations"] = {"a": "b"}
    await kube.update(claim)


async def test_reserved_claim_cannot_be_deallocated(kube: Kube, site: Fleet) -> None:
    """Who clears the allocation clears the reservations with it."""
    claim = await site.allocate(await site.claim("c"), site.a)
    claim["status"]["reservedFor"] = [marker()]
    claim = await kube.update(claim, "status")
    with pytest.raises(RefusedError) as no:
        await kube.update(
            {**claim, "status": {"reservedFor": claim["status"]["reservedFor"]}},
            "status",
        )
    assert no.value.status == 422
    told = "Forbidden: may not be specified when `allocated` is not set"
    assert f"status.reservedFor: {told}" in no.value.message
    await kube.update({**claim, "status": {}}, "status")


async def test_stale_version_is_a_conflict_and_no_version_overwrites(
    kube: Kube, site: Fleet
) -> None:
    """A PUT without resourceVersion takes away what others wrote meanwhile."""
    claim = await site.claim("c")
    stale = deepcopy(claim)
    claim = await site.allocate(claim, site.a)
    stale["status"] = {"allocation": site.allocation(site.b)}
    with pytest.raises(RefusedError) as no:
        await kube.update(stale, "status")
    assert (no.value.status, no.value.reason) == (409, "Conflict")
    del stale["metadata"]["resourceVersion"]
    stale["status"] = {}
    assert not allocated(await kube.update(stale, "status"))


async def test_wrong_uid_is_a_conflict_in_a_put_and_invalid_in_a_patch(
    kube: Kube, site: Fleet
) -> None:
    """The uid protects from a claim of the same name; its answers differ."""
    claim = await site.claim("c")
    claim["metadata"]["uid"] = STRANGER
    status = {"allocation": site.allocation(site.a)}
    with pytest.raises(RefusedError) as no:
        await kube.update({**claim, "status": status}, "status")
    assert (no.value.status, no.value.reason) == (409, "Conflict")
    patch = {"metadata": {"uid": STRANGER}, "status": status}
    with pytest.raises(RefusedError, match=r"metadata\.uid") as no:
        await kube.patch(claim, patch, "status")
    assert (no.value.status, no.value.reason) == (422, "Invalid")


async def test_timestamp_keeps_whole_seconds_only(kube: Kube, site: Fleet) -> None:
    """Fractions are lost, so that writing them again is a change: refused."""
    claim = await site.protect(await site.claim("c"))
    wanted = site.allocation(site.a)
    wanted["allocationTimestamp"] = "2026-01-02T03:04:05.678Z"
    claim["status"] = {"allocation": wanted}
    kept = await kube.update(claim, "status")
    stamp = kept["status"]["allocation"]["allocationTimestamp"]
    assert stamp == "2026-01-02T03:04:05Z"
    claim["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"]
    with pytest.raises(RefusedError, match="field cannot be modified once set") as no:
        await kube.update(claim, "status")
    assert no.value.status == 422


async def test_one_device_in_two_claims_is_accepted(site: Fleet) -> None:
    """Trap 3: nobody checks that a device is free, or that it exists."""
    for name in ("one", "two"):
        claim = await site.allocate(await site.claim(name), site.a, "no-such-device")
        assert allocated(claim)


async def test_status_and_metadata_are_written_apart(kube: Kube, site: Fleet) -> None:
    """Neither call does the other's work, and a claim is created without status."""
    thing = objects.claim(site.namespace, "c", objects.requests(site.device_class))
    status = {"allocation": site.allocation(site.a)}
    claim = await kube.create({**thing, "status": status})
    assert not allocated(claim)
    claim["metadata"]["finalizers"] = [FINALIZER]
    claim = await kube.update({**claim, "status": status}, "status")
    assert allocated(claim)
    assert "finalizers" not in claim["metadata"]
    claim["metadata"]["finalizers"] = [FINALIZER]
    claim = await kube.update({**claim, "status": {}})
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    assert allocated(claim)


async def test_claim_is_reserved_for_256_at_most(kube: Kube, site: Fleet) -> None:
    """One more is refused."""
    claim = await site.allocate(await site.claim("c"), site.a)
    claim["status"]["reservedFor"] = [marker(number) for number in range(1, 257)]
    claim = await kube.update(claim, "status")
    claim["status"]["reservedFor"].append(marker(257))
    with pytest.raises(RefusedError, match="reservedFor: Too many") as no:
        await kube.update(claim, "status")
    assert no.value.status == 422
    await kube.update({**claim, "status": {}}, "status")


async def test_fields_of_features_that_are_off_vanish_without_a_word(
    site: Fleet,
) -> None:
    """The answer is 200: who needs such a field reads what came back."""
    claim = await site.allocate(
        await site.claim("c"), site.a, result={"skipNodeOperations": ["*"]}
    )
    assert (
        "skipNodeOperations"
        not in claim["status"]["allocation"]["devices"]["results"][0]
    )


async def test_of_two_writers_exactly_one_allocates(kube: Kube, site: Fleet) -> None:
    """By resourceVersion alone, on every one of many claims."""
    names = [f"c{number}" for number in range(40)]
    claims = await asyncio.gather(*(site.claim(name) for name in names))

    async def write(claim: Json, node: str) -> Json:
        status = {"allocation": site.allocation(node)}
        return await kube.update({**claim, "status": status}, "status")

    tried = await asyncio.gather(
        *(write(claim, node) for claim in claims for node in site.nodes),
        return_exceptions=True,
    )
    lost = [error for error in tried if isinstance(error, RefusedError)]
    assert [error.status for error in lost] == [409] * len(names)
    won = [not isinstance(answer, RefusedError) for answer in tried]
    assert [a + b for a, b in zip(won[::2], won[1::2], strict=True)] == [1] * len(names)
    for claim, first in zip(claims, won[::2], strict=True):
        kept = (await kube.get(claim))["status"]["allocation"]["devices"]["results"]
        assert kept[0]["pool"] == (site.a if first else site.b)
