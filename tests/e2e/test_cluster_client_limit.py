"""A publisher with a client limit decides nothing else, only later."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from contracts.names import FINALIZER
from moorings.local.process import find_free_port
from tests.lab import cluster
from tests.lab.cluster import gang_pod, is_bound, pods_until
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.metrics import scrape
from tests.lab.services import eventually

PODS = 60
ENDS_WITHIN_S = 15.0
"""Less than one more request takes at the limit."""
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


async def test_what_waits_for_the_limit_goes_when_leading_ends(
    kube: Kube, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The first writes of a gang are done, the others would take minutes."""
    async with cluster.stack(
        control_plane,
        tmp_path,
        PUBLISHER_KUBE_API_QPS="0.03",
        PUBLISHER_KUBE_API_BURST="80",
    ) as stack:
        await cluster.fleet(kube, namespace, 1, PODS)
        spec = objects.requests(f"{namespace}.example.com")
        await kube.create(objects.template(namespace, "one", spec))
        for index in range(PODS):
            pod = gang_pod(
                namespace,
                f"train-{index}",
                gang="train",
                size=PODS,
                templates={"gpu": "one"},
            )
            await kube.create(pod)

        async def count_prepared() -> int:
            claims = await kube.list(objects.RESOURCE, "ResourceClaim", namespace)
            return sum(FINALIZER in c["metadata"].get("finalizers", ()) for c in claims)

        await eventually(count_prepared, "its writes have begun", 120.0)
        counted = -1
        while counted != (counted := await count_prepared()):  # noqa: ASYNC110
            await asyncio.sleep(2)
        assert counted < PODS
        began_s = time.monotonic()
        assert await asyncio.to_thread(stack["publisher"].stop) == 0
        assert time.monotonic() - began_s < ENDS_WITHIN_S
        assert await count_prepared() > counted
