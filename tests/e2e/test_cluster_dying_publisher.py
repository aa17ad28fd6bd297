"""A publisher that dies again and again, sooner than its Lease expires."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.lab import cluster
from tests.lab.cluster import fleet, gang_pod, is_bound, pods_until
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import Process

LIVES_S = 8.0
GANGS = 3


async def kill_again_and_again(publisher: Process) -> None:
    """End a publisher every few seconds, and start the next one at once."""
    while True:
        await asyncio.to_thread(publisher.kill)
        publisher.start()
        await asyncio.sleep(LIVES_S)


async def test_pods_start_although_the_publisher_dies_sooner_than_its_lease(
    control_plane: ControlPlane, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """Each start takes the Lease of the dead one, which lasts 60 s, at once."""
    await fleet(kube, namespace, 1, 2 * GANGS)
    wanted = objects.requests(f"{namespace}.example.com", 1)
    await kube.create(objects.template(namespace, "one", wanted))
    async with cluster.stack(control_plane, tmp_path, PUBLISHER_LEASE_S="60") as stack:
        killing = asyncio.create_task(kill_again_and_again(stack["publisher"]))
        try:
            for gang in range(GANGS):
                names = [f"g{gang}-{number}" for number in range(2)]
                for name in names:
                    pod = gang_pod(
                        namespace,
                        name,
                        gang=f"g{gang}",
                        size=2,
                        templates={"gpus": "one"},
                    )
                    await kube.create(pod)
                await pods_until(kube, namespace, names, is_bound)
                await asyncio.sleep(LIVES_S / 2)
            assert not killing.done()
        finally:
            killing.cancel()
            await asyncio.wait((killing,))
