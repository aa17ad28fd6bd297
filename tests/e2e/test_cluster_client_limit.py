"""A publisher with a client limit decides nothing else, only later."""

from __future__ import annotations

from pathlib import Path

from moorings.local.process import find_free_port
from tests.lab import cluster
from tests.lab.cluster import gang_pod, is_bound, pods_until
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.metrics import scrape

WAITED = "rest_client_rate_limiter_duration_seconds_count"


async def test_a_gang_is_bound_by_a_publisher_that_has_to_wait(
    kube: Kube, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Its reads, watches and writes wait; it leads for longer than its Lease lasts."""
    address = f"127.0.0.1:{find_free_port()}"
    async with cluster.stack(
        control_plane,
        tmp_path,
        PUBLISHER_HEALTH_ADDRESS=address,
        PUBLISHER_KUBE_API_QPS="10",
        PUBLISHER_KUBE_API_BURST="2",
    ) as stack:
        await cluster.fleet(kube, namespace, 1, 8)
        spec = objects.requests(f"{namespace}.example.com")
        await kube.create(objects.template(namespace, "one", spec))
        names = [f"train-{index}" for index in range(8)]
        for name in names:
            pod = gang_pod(
                namespace, name, gang="train", size=8, templates={"gpu": "one"}
            )
            await kube.create(pod)
        await pods_until(kube, namespace, names, is_bound)
        found = await scrape(address)
        for verb in ("GET", "WATCH", "PATCH"):
            assert found.of(WAITED, verb=verb) >= 1, verb
        assert '"lease.lost"' not in stack["publisher"].log()
