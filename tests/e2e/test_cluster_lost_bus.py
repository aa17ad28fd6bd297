"""NATS that lost all it had: nothing needs to be restored."""

from __future__ import annotations

import asyncio
import shutil

from tests.lab.cluster import Stack, create_pods, is_running, template
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_told


async def test_pods_that_wait_are_submitted_again(
    site: Fleet, kube: Kube, stack: Stack
) -> None:
    """Whoever knows of what is not on the bus any more begins anew."""
    await template(site, count=4)
    await create_pods(site, "first", range(2), size=2)
    first = await pods_of(site, "first", 2, is_running)
    second = await create_pods(site, "second", range(2), size=2)
    await until_told(kube, second[0], "GangDevicesTaken")
    await asyncio.to_thread(stack.nats.kill)
    shutil.rmtree(stack.nats.store_dir / "data")
    await asyncio.to_thread(stack.nats.start)
    for name in ("solver", "publisher"):
        assert await asyncio.to_thread(stack[name].ended) != 0
        stack[name].start()
    for pod in first:
        site.kubelets.finish(pod)
    await pods_of(site, "second", 2, is_running)
