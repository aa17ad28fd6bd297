"""What Moorings owns is its alone, the rest is left to kube-scheduler."""

from __future__ import annotations

from pathlib import Path

from tests.lab import cluster
from tests.lab.cluster import create_pods, exists, gang_pod, is_running, template
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.fleet import Fleet, allocated
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.server import ControlPlane
from tests.lab.waits import until_told

KIND = "deviceclass.resource.kubernetes.io"
REMOVED = [{"op": "remove", "path": "/spec/schedulingGates"}]


async def test_classes_of_others_are_left_to_kube_scheduler(
    kube: Kube, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """What it allocates is taken; a pod may have claims of both kinds.

    Here both classes are of the same devices.
    """
    async with fleet.running(kube, namespace, ["a"]) as site:
        theirs = f"{namespace}-theirs"
        await kube.create(objects.device_class(theirs, site.driver))
        spec = objects.requests(theirs)
        await kube.create(objects.template(namespace, "theirs", spec))
        await template(site, "ours", count=3)
        owned = site.device_class
        async with cluster.stack(
            control_plane, tmp_path, PUBLISHER_OWNED_CLASSES=owned
        ):
            first = objects.pod(namespace, "first", templates={"d": "theirs"})
            first = await kube.until(await kube.create(first), is_running)
            gated = gang_pod(namespace, "gated", templates={"d": "theirs"})
            gated = await kube.until(await kube.create(gated), is_running)
            both = {"d": "ours", "e": "theirs"}
            pod = await kube.create(gang_pod(namespace, "both", templates=both))
            note = await until_told(kube, pod, "GangDevicesTaken")
            assert "2 are free" in note
            await _ask_as_extended(site, f"{KIND}/{theirs}")
            for other in (first, gated):
                site.kubelets.finish(other)
            await kube.until(pod, is_running)


async def _ask_as_extended(site: Fleet, resource: str) -> None:
    """A gated pod that asks as well for what only kube-scheduler allocates is told."""
    pod = gang_pod(site.namespace, "extended", templates={"d": "ours"})
    pod["spec"]["containers"][0]["resources"] |= {"limits": {resource: "1"}}
    pod = await site.kube.create(pod)
    note = await until_told(site.kube, pod, "GangNotModelled")
    assert f"spec.containers[].resources[{resource}]" in note
    await site.kube.delete(pod)


async def test_a_gate_removed_by_hand_gives_nobody_an_owned_device(
    kube: Kube, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The taint keeps kube-scheduler from the devices of an owned driver."""
    async with fleet.running(kube, namespace, ["a"]) as site:
        await template(site, count=2)
        owned = site.driver
        async with cluster.stack(
            control_plane,
            tmp_path,
            PUBLISHER_OWNED_DRIVERS=owned,
            PUBLISHER_OWNED_CLASSES=site.device_class,
        ):
            rule = named(RESOURCE, "DeviceTaintRule", f"moorings-owned-{owned}")
            await kube.until(rule, exists)
            ahead, waiting = await create_pods(site, "train", range(2), size=3)
            await until_told(kube, waiting, "GangPodsMissing")
            await kube.patch(ahead, REMOVED)
            await site.failed(ahead, times=1)
            claim = await site.generated(ahead)
            assert not allocated(claim)
            note = await until_told(kube, ahead, "GangGateMissing")
            assert "create them again with the gate" in note
