"""What a node must bear, whatever runs its containers; `Site` says where."""

from __future__ import annotations

import asyncio
import json

from tests.lab.controlplane.client import Json
from tests.lab.controlplane.fleet import runs
from tests.lab.node.site import RUNNING_S, Site, health_of
from tests.lab.services import eventually


async def hear_of_health(site: Site, pod: Json) -> None:
    """Let the status of a pod say what our stream says: sick, and well again."""
    await site.kube.until(pod, lambda found: health_of(found) == [("Healthy", "")])
    claim = await site.claim_of(pod)
    (device,) = claim["status"]["allocation"]["devices"]["results"]
    fault = {
        "node": site.node.name,
        "device": device["device"],
        "verdict": "Unknown",
        "message": "no answer",
    }
    site.inject(json.dumps({"faults": [fault]}))
    sick = [("Unknown", "no answer")]
    await site.kube.until(pod, lambda found: health_of(found) == sick)
    site.inject("")
    await site.kube.until(pod, lambda found: health_of(found)[0][0] == "Healthy")


async def restart_agent_and_kubelet(site: Site) -> None:
    """Both are killed under running pods; then pods start, end, and slices are back."""
    agent = site.agent("restart")
    async with site.running(agent):
        first = await site.until_runs(await site.start("a"))
        agent.kill()
        site.forget_log("restart")
        async with site.running(agent):
            second = await site.until_runs(await site.start("b"))
            before = await site.slices()
            site.forget_log("restart")
            site.node.kill_kubelet()
            await asyncio.to_thread(site.node.start_kubelet)
            # kubelet's start deletes the slices of its node.
            await eventually(lambda: site.are_new(before), "slices are back", RUNNING_S)
            await eventually(
                lambda: '"plugin.registered"' in agent.log(), "registered", RUNNING_S
            )
            third = await site.until_runs(await site.start("c"))
            for pod in (first, second, third):
                found = await site.kube.get(pod)
                assert runs(found)
                assert found["status"]["containerStatuses"][0]["restartCount"] == 0
            assert len(site.records()) == 3
            for pod in (first, second, third):
                await site.end(pod, nothing_left=False)
            await eventually(lambda: site.records() == [], "unprepared", RUNNING_S)


async def roll(site: Site, count: int) -> None:
    """A newer instance is there before the older one leaves: no start fails."""
    older, newer = site.agent("uid-1"), site.agent("uid-2")
    async with site.running(older):
        half = count // 2
        pods = [await site.start(f"p-{number}") for number in range(half)]
        async with site.running(newer):
            pods += [await site.start(f"p-{number}") for number in range(half, count)]
            assert older.stop() == 0
            await asyncio.gather(*map(site.until_runs, pods))
            assert "FailedPrepareDynamicResources" not in await site.reasons()
            registry = site.node.kubelet_folder / "plugins_registry"
            sockets = [path.name for path in registry.glob(f"{site.driver}*")]
            assert sockets == [f"{site.driver}-uid-2-reg.sock"]
            for pod in pods:
                await site.kube.delete(pod)
            # What the older one prepared, the newer one unprepares.
            await eventually(lambda: site.records() == [], "unprepared", RUNNING_S)
            assert site.cdi_files() == []
