"""A device that fails under a running Job: from the agent's reading to new pods.

The agent reads a bad device, judges it, and says so on the bus; the publisher taints it
in its slice and in the claim's status. What evicts is policy: by default nobody is, and
for a reason that is listed kube-controller-manager ends the pod, whose replacement is
decided on devices that are healthy. A gang may be made anew as a whole without that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from contracts.names import MAX_RECREATIONS, ON_DEVICE_FAILURE, RECOVERY, UNHEALTHY
from tests.lab import cluster
from tests.lab.cluster import Stack, create_pods, exists, is_running, job, uid_of
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import Process, eventually
from tests.lab.waits import pods_of, until_told

EVICTS = "Xid79"
DRIVER = "gpu.moorings.dev"
"""Of the agents of k8s/base: for others the publisher may not write device status."""
FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: sick
nodes:
- {{shape: a, count: 1, name: {a}, devices: [{devices}]}}
- {{shape: b, count: 1, name: {b}, devices: [{devices}]}}
"""
DEVICES = f'{{driver: {DRIVER}, count: 2, name: "gpu-{{index}}"}}'


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A publisher that lets devices end their pods, if their agents ask for it."""
    folder = tmp_path_factory.mktemp("stack")
    with cluster.started(
        control_plane, folder, PUBLISHER_WORST_EFFECT="NoExecute"
    ) as running:
        yield running


class SickFleet:
    """Nodes whose devices an agent announces, and their faults."""

    def __init__(self, site: Fleet, folder: Path) -> None:
        self.site = site
        self._folder = folder

    def fail(self, held: Json, reason: str) -> None:
        """Let a device that is held give nothing but bad readings."""
        fault = (
            f"node: {held['pool']}, device: {held['device']}, verdict: Unhealthy, "
            f"reason: {reason}, message: fell off the bus"
        )
        new = self._folder / "faults.new"
        new.write_text(f"faults: [{{{fault}}}]")
        new.replace(self._folder / "faults.yaml")

    async def held(self, pod: Json) -> Json:
        """Give the device that a pod holds: a result of its claim."""
        claim = await self.claim(pod)
        result: Json = claim["status"]["allocation"]["devices"]["results"][0]
        return result

    async def claim(self, pod: Json) -> Json:
        """Read the claim of a pod."""
        (status,) = pod["status"]["resourceClaimStatuses"]
        name = status["resourceClaimName"]
        return await self.site.kube.get(
            named(RESOURCE, "ResourceClaim", name, self.site.namespace)
        )

    async def taint(self, held: Json) -> str:
        """Read the effect of our taint on a device, in its slice; empty: none."""
        select = f"spec.nodeName={held['pool']}"
        slices = await self.site.kube.list(
            RESOURCE, "ResourceSlice", fieldSelector=select
        )
        return next(
            (
                str(taint["effect"])
                for item in slices
                for device in item["spec"]["devices"]
                for taint in device.get("taints", ())
                if (device["name"], taint["key"]) == (held["device"], UNHEALTHY)
            ),
            "",
        )

    async def tainted(self, held: Json, effect: str) -> None:
        """Wait until a device is tainted in its slice."""

        async def there() -> bool:
            return await self.taint(held) == effect

        await eventually(there, f"{held['device']} has {effect}", 60.0)


@asynccontextmanager
async def sick_fleet(
    kube: Kube, stack: Stack, namespace: str, folder: Path, **variables: str
) -> AsyncIterator[SickFleet]:
    """Run an agent for two nodes of two devices each, and a class of these."""
    async with fleet.running(kube, namespace, devices=()) as site:
        text = FLEET.format(a=site.a, b=site.b, devices=DEVICES)
        (folder / "fleet.yaml").write_text(text)
        site.driver = DRIVER
        await site.publish(objects.device_class(f"{namespace}-sick", DRIVER))
        spec = objects.requests(f"{namespace}-sick", 1)
        await kube.create(objects.template(namespace, "one", spec))
        agent = Process(
            "nodeagent",
            folder / "agent.log",
            NODEAGENT_SERVERS=stack.nats.url,
            NODEAGENT_FLEET=str(folder / "fleet.yaml"),
            NODEAGENT_FAULTS_FILE=str(folder / "faults.yaml"),
            **variables,
        )
        agent.start()
        try:
            yield SickFleet(site, folder)
        finally:
            agent.close()


async def running_job(sick: SickFleet) -> list[Json]:
    """Let a Job take three of the four devices."""
    await sick.site.kube.create(job(sick.site, "train", 3, "one"))
    return await pods_of(sick.site, "train", 3, is_running, 60.0)


async def test_a_listed_reason_evicts_and_the_replacement_gets_a_healthy_device(
    kube: Kube, stack: Stack, namespace: str, tmp_path: Path
) -> None:
    """Only the pod that holds the device goes."""
    listed = {"NODEAGENT_EVICT_REASONS": EVICTS}
    async with sick_fleet(kube, stack, namespace, tmp_path, **listed) as sick:
        first, *others = await running_job(sick)
        bad = await sick.held(first)
        sick.fail(bad, EVICTS)
        await sick.tainted(bad, "NoExecute")
        uids = set(map(uid_of, (first, *others)))

        def replaces(pod: Json) -> bool:
            return is_running(pod) and uid_of(pod) not in uids

        (second,) = await pods_of(sick.site, "train", 1, replaces, 60.0)
        held = await sick.held(second)
        assert (held["pool"], held["device"]) != (bad["pool"], bad["device"])
        assert await sick.taint(held) == ""
        for pod in others:
            assert uid_of(await kube.get(pod)) == uid_of(pod)
            assert is_running(await kube.get(pod))


async def test_by_default_nobody_is_evicted_and_nothing_new_comes(
    kube: Kube, stack: Stack, namespace: str, tmp_path: Path
) -> None:
    """The claim says why, and a gang that would need the device waits."""
    async with sick_fleet(kube, stack, namespace, tmp_path) as sick:
        first, *others = await running_job(sick)
        bad = await sick.held(first)
        sick.fail(bad, EVICTS)
        await sick.tainted(bad, "NoSchedule")
        await kube.until(await sick.claim(first), _is_told)
        site = sick.site
        await create_pods(site, "next", range(1), "one", size=1)
        (taken,) = await pods_of(site, "next", 1, is_running)
        site.kubelets.finish(first)
        await create_pods(site, "last", range(1), "one", size=1)
        (last,) = await pods_of(site, "last", 1, exists)
        await until_told(kube, last, "GangDevicesTainted")
        for pod in (*others, taken):
            assert is_running(await kube.get(pod))


async def test_a_gang_is_made_anew_elsewhere_for_a_reason_that_its_author_lists(
    kube: Kube, stack: Stack, namespace: str, tmp_path: Path
) -> None:
    """All of it, once: the next time it stays, as its limit says. Nobody is evicted."""
    async with sick_fleet(kube, stack, namespace, tmp_path) as sick:
        made = job(sick.site, "train", 2, "one", backoffLimit=6)
        made["spec"]["template"]["metadata"]["annotations"] |= {
            RECOVERY: "Recreate",
            ON_DEVICE_FAILURE: EVICTS,
            MAX_RECREATIONS: "1",
        }
        await kube.create(made)
        first, second = await pods_of(sick.site, "train", 2, is_running, 60.0)
        bad = await sick.held(first)
        sick.fail(bad, EVICTS)
        note = await until_told(kube, first, "GangDeviceFailed")
        assert f"{DRIVER}/{bad['pool']}/{bad['device']}" in note
        assert f"Unhealthy: {EVICTS}: fell off the bus" in note
        uids = {uid_of(first), uid_of(second)}

        def is_new(pod: Json) -> bool:
            return is_running(pod) and uid_of(pod) not in uids

        again = await pods_of(sick.site, "train", 2, is_new, 60.0)
        held = [await sick.held(pod) for pod in again]
        assert not any(
            (h["pool"], h["device"]) == (bad["pool"], bad["device"]) for h in held
        )
        sick.fail(held[0], EVICTS)

        note = await until_told(kube, again[0], "GangRecreationsExhausted")
        assert note.startswith("its pods were recreated 1 time, as often as")
        for pod in again:
            assert is_running(await kube.get(pod))


def _is_told(claim: Json) -> bool:
    """Whether a claim says that its device is not ready, and why."""
    return any(
        condition["type"] == "Ready"
        and condition["status"] == "False"
        and "fell off the bus" in condition["message"]
        for device in claim["status"].get("devices", ())
        for condition in device.get("conditions", ())
    )
