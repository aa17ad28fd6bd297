"""Other people and programs that change what Moorings relies on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress

import pytest

from contracts.gang import GangPhase
from contracts.messages import GangAllocated
from contracts.names import FINALIZER, GANG, GANG_SIZE
from moorings.bus_client import Client
from tests.lab.cluster import Stack, create_pods, is_running, template
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.fleet import Fleet, allocated, users
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.services import Process, eventually
from tests.lab.waits import pods_of, until_phase, until_told

NOBODY = {"schedulerName": "nobody"}
"""A pod's own field: its gate opens, and nobody binds it."""
TOUCHED = {"metadata": {"labels": {"example.com/touched": "true"}}}
FREE = {"allocation": None, "reservedFor": None}
ATTEMPTS = 8
UNDER_WAY_S = 0.2
"""A request that a process sent before it stood still is answered by then."""


@contextmanager
def paused(process: Process) -> Iterator[None]:
    """Let a process stand still while the block runs."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def devices_of(claim: Json) -> set[tuple[str, str]]:
    """Give pool and name of each device that a claim holds."""
    results = claim["status"]["allocation"]["devices"]["results"]
    return {(item["pool"], item["device"]) for item in results}


async def held(site: Fleet) -> list[tuple[str, str]]:
    """List the devices of all claims."""
    claims = await site.kube.list(RESOURCE, "ResourceClaim", site.namespace)
    return [item for claim in claims if allocated(claim) for item in devices_of(claim)]


async def unbound_pair(site: Fleet, client: Client) -> tuple[list[Json], Json]:
    """Make a gang whose pods nobody binds; gives them and the first one's claim."""
    await template(site, count=2)
    pods = await create_pods(site, "train", range(2), size=2, **NOBODY)
    await until_phase(client, site, "train", GangPhase.RUNNING)
    return pods, await site.generated(pods[0])


async def until_decided_again(site: Fleet, claim: Json) -> None:
    """Wait until a claim that was freed is allocated on the node that it was on."""
    known = claim["status"]["allocation"]["allocationTimestamp"]

    def again(found: Json) -> bool:
        version = found["metadata"]["resourceVersion"]
        changed = version != claim["metadata"]["resourceVersion"]
        return changed and allocated(found) and users(found) == ["train-0"]

    found = await site.kube.until(claim, again)
    assert known
    assert {pool for pool, _ in devices_of(found)} == {
        pool for pool, _ in devices_of(claim)
    }


# --- claims -----------------------------------------------------------------------


async def test_a_claim_freed_before_its_pod_is_bound_is_decided_again(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """On the node that the pod is pinned to."""
    _, claim = await unbound_pair(site, client)
    await kube.patch(claim, {"status": FREE}, "status")
    await until_decided_again(site, claim)


async def test_a_reservation_for_nobody_is_survived(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """kube-controller-manager frees the claim for it."""
    _, claim = await unbound_pair(site, client)
    nobody = {"resource": "pods", "name": "nobody", "uid": "nobody"}
    await kube.patch(claim, {"status": {"reservedFor": [nobody]}}, "status")
    await until_decided_again(site, claim)


async def test_claims_freed_while_they_are_written_are_written_again(
    site: Fleet, kube: Kube, stack: Stack
) -> None:
    """No gate opens before all of them hold their devices at once."""
    await template(site, count=2)
    for attempt in range(ATTEMPTS):
        gang = f"train-{attempt}"
        freeing = asyncio.create_task(free_while_written(site, stack, gang))
        created = await create_pods(site, gang, range(4), size=4)
        freed = await freeing
        # Up to five claims were freed, each while the gang was being written.
        await pods_of(site, gang, 4, is_running, within_s=90)
        assert len(await held(site)) == len(set(await held(site))) == 8
        if freed:
            return
        # All gates were open before we were told of the first claim: once more.
        await asyncio.gather(*map(kube.delete, created))
        await asyncio.gather(*map(kube.until_gone, created))
    pytest.fail(f"no claim could be freed in time, {ATTEMPTS} times")


async def free_while_written(site: Fleet, stack: Stack, gang: str) -> int:
    """Free claims of a gang whose gates are not open yet; returns how many, up to 5."""
    kube, freed = site.kube, 0
    path = f"/apis/{RESOURCE}/namespaces/{site.namespace}/resourceclaims"
    async with aclosing(kube.watch(path, "0")) as events:
        async for event in events:
            claim: Json = {"apiVersion": RESOURCE, "kind": "ResourceClaim"}
            claim |= event["object"]
            if not allocated(claim):
                continue
            (owner,) = claim["metadata"]["ownerReferences"]
            if not owner["name"].startswith(gang):
                continue  # one of a gang before
            pod = named("v1", "Pod", owner["name"], site.namespace)
            # No gate opens between the look and the write.
            with paused(stack["publisher"]):
                await asyncio.sleep(UNDER_WAY_S)
                if "schedulingGates" not in (await kube.get(pod))["spec"]:
                    return freed  # from then on it is the pod's that runs
                version = claim["metadata"]["resourceVersion"]
                patch = {"metadata": {"resourceVersion": version}, "status": FREE}
                with suppress(RefusedError):
                    await kube.patch(claim, patch, "status")
                    freed += 1
            if freed == 5:
                return freed
    return freed


async def test_a_device_taken_between_decision_and_write_is_not_given_twice(
    site: Fleet, client: Client, stack: Stack
) -> None:
    """The decision is refused, undone and made again with other devices."""
    await template(site, count=2)
    foreign = await site.claim("foreign")
    with paused(stack["publisher"]):
        with paused(stack["solver"]):
            os.kill(stack["publisher"].pid, signal.SIGCONT)
            await create_pods(site, "train", range(2), size=2)
            await until_phase(client, site, "train", GangPhase.PENDING)
            os.kill(stack["publisher"].pid, signal.SIGSTOP)
        record = await until_phase(client, site, "train", GangPhase.DECIDED)
        assert isinstance(record.decision, GangAllocated)
        allocation = record.decision.members[0].claims[0].allocation
        taken = allocation.devices.results[0]
        await site.allocate(foreign, taken.pool, taken.device)
    await pods_of(site, "train", 2, is_running)
    assert len(await held(site)) == len(set(await held(site))) == 5
    record = await until_phase(client, site, "train", GangPhase.RUNNING)
    assert record.attempt == 2


async def test_a_device_that_is_given_twice_later_is_told(
    site: Fleet, kube: Kube
) -> None:
    """To the pod that had it first: neither the API server nor its node would."""
    await template(site, count=4)
    (pod,) = await create_pods(site, "train", range(1), size=1)
    pod = await kube.until(pod, is_running)
    foreign = await site.claim("foreign")
    await site.allocate(foreign, pod["spec"]["nodeName"], "dev-2")
    note = await until_told(kube, pod, "GangDeviceHeldTwice")
    taken = f"{site.driver}/{pod['spec']['nodeName']}/dev-2"
    other = f"ResourceClaim {site.namespace}/foreign"
    assert note == f"device {taken} was also allocated to {other}"


async def test_a_finalizer_that_somebody_removed_comes_back(
    site: Fleet, kube: Kube
) -> None:
    """Without it nobody would free the claim: trap 4."""
    await template(site, count=2)
    (pod,) = await create_pods(site, "train", range(1), size=1)
    await kube.until(pod, is_running)
    claim = await site.generated(pod)
    await kube.patch(claim, {"metadata": {"finalizers": None}})
    await kube.until(claim, lambda c: FINALIZER in c["metadata"].get("finalizers", ()))


# --- pods -------------------------------------------------------------------------


async def test_a_gate_removed_by_hand_lets_that_pod_through_alone(
    site: Fleet, kube: Kube
) -> None:
    """kube-scheduler serves it, as these devices are not tainted; the others wait."""
    await template(site, count=2)
    ahead, waiting = await create_pods(site, "train", range(2), size=3)
    await until_told(kube, waiting, "GangPodsMissing")
    await kube.patch(ahead, [{"op": "remove", "path": "/spec/schedulingGates"}])
    await kube.until(ahead, is_running)
    await create_pods(site, "train", [2], size=3)
    await kube.until(waiting, lambda pod: bool(pod["spec"].get("schedulingGates")))
    await kube.delete(ahead)
    await kube.until_gone(ahead)
    await create_pods(site, "train", [0], size=3)
    await pods_of(site, "train", 3, is_running)


async def test_labels_and_annotations_may_change_while_pods_wait(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """What they say now counts; what was asked for before is withdrawn."""
    await template(site, "all", count=4)
    await template(site, count=2)
    blocker = await create_pods(site, "first", range(2), "all", size=2)
    blocker = await pods_of(site, "first", 2, is_running)
    pods = await create_pods(site, "train", range(2), size=2)
    await until_told(kube, pods[0], "GangDevicesTaken")
    await kube.patch(pods[0], {"metadata": {"annotations": {GANG_SIZE: "3"}}})
    await kube.patch(pods[1], {"metadata": {"labels": {GANG: "other"}}})
    await until_phase(client, site, "train", GangPhase.CANCELLED)
    await until_told(kube, pods[0], "GangPodsMissing")
    await kube.patch(pods[0], {"metadata": {"annotations": {GANG_SIZE: "2"}}})
    await kube.patch(pods[0], {"metadata": {"labels": {GANG: "other"}}})
    for pod in blocker:
        site.kubelets.finish(pod)
    await pods_of(site, "other", 2, is_running)


async def test_running_pods_whose_annotations_are_lost_keep_their_devices(
    site: Fleet, kube: Kube
) -> None:
    await template(site, count=4)
    pods = await create_pods(site, "first", range(2), size=2)
    pods = await pods_of(site, "first", 2, is_running)
    for pod in pods:
        gone = dict.fromkeys(pod["metadata"]["annotations"])
        await kube.patch(pod, {"metadata": {"annotations": gone, "labels": None}})
    (waiting, _) = await create_pods(site, "second", range(2), size=2)
    await until_told(kube, waiting, "GangDevicesTaken")
    for pod in pods:
        site.kubelets.finish(pod)
    await pods_of(site, "second", 2, is_running)


async def test_a_policy_that_refuses_our_writes_is_told(
    site: Fleet, kube: Kube
) -> None:
    """In the API server's own words; nothing is submitted meanwhile."""
    admission = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["*"]}
    rule |= {"operations": ["UPDATE"], "resources": ["resourceclaims"]}
    await kube.create(
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": site.namespace},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [
                    {
                        "expression": "!has(object.metadata.finalizers)",
                        "message": "no finalizers here",
                    }
                ],
            },
        }
    )
    name = {"kubernetes.io/metadata.name": site.namespace}
    binding = {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": site.namespace},
        "spec": {
            "policyName": site.namespace,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": name}},
        },
    }
    await kube.create(binding)
    probe = await site.claim("probe")

    async def in_force() -> bool:
        try:
            await kube.patch(probe, {"metadata": {"finalizers": [FINALIZER]}})
        except RefusedError:
            return True
        await kube.patch(probe, {"metadata": {"finalizers": None}})
        return False

    await eventually(in_force, "the policy is in force")
    await template(site, count=2)
    pods = await create_pods(site, "train", range(2), size=2)
    for pod in pods:
        assert "no finalizers here" in await until_told(kube, pod, "GangWriteRefused")
    await kube.delete(binding)

    async def lifted() -> bool:
        return not await in_force()

    await eventually(lifted, "the policy is lifted")
    for pod in pods:
        await kube.patch(await site.generated(pod), TOUCHED)
    await pods_of(site, "train", 2, is_running)
