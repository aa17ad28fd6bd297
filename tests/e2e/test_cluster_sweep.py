"""Claims that hold devices for nobody are freed; everybody else's are left alone."""

from __future__ import annotations

from pathlib import Path

from contracts.names import FINALIZER, MANAGED
from tests.lab import cluster
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.server import ControlPlane


def orphan(namespace: str, name: str, *, managed: bool) -> Json:
    item = objects.claim(namespace, name, objects.requests(f"{namespace}.example.com"))
    item["metadata"]["finalizers"] = [FINALIZER]
    item["metadata"]["annotations"] = {MANAGED: "true"} if managed else {}
    return item


async def allocate(kube: Kube, claim: Json) -> Json:
    namespace = claim["metadata"]["namespace"]
    device = {"driver": f"{namespace}.example.com", "pool": "a", "device": "dev-0"}
    allocation = {
        "devices": {"results": [{"request": "r", **device}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }
    made = await kube.create(claim)
    made["status"] = {"allocation": allocation}
    return await kube.update(made, "status")


async def test_an_orphan_of_ours_is_freed_and_one_of_others_is_not(
    kube: Kube, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Unreserve of kube-scheduler leaves such claims; nobody else frees them."""
    ours = await allocate(kube, orphan(namespace, "ours", managed=True))
    theirs = await allocate(kube, orphan(namespace, "theirs", managed=False))
    async with cluster.stack(control_plane, tmp_path, PUBLISHER_SWEEP_S="0.3"):
        await kube.until(ours, lambda claim: not claim["status"].get("allocation"))
        assert (await kube.get(theirs))["status"]["allocation"]
