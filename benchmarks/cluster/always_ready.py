"""An AdmissionCheck that is Ready at once, whatever is asked: what any check costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

from benchmarks.cluster.setup import IN_FLIGHT
from tests.lab.controlplane.client import Json, Kube, RefusedError, named, path_of
from tests.lab.controlplane.fleet import now
from tests.lab.kueue import queues
from tests.lab.kueue.queues import KUEUE

CONTROLLER = "example.com/ready"
_PATH = path_of(named(KUEUE, "Workload", ""))


@asynccontextmanager
async def answering(kube: Kube, name: str) -> AsyncIterator[None]:
    """Answer for a new check while the block runs."""
    check = await kube.create(queues.check(name, CONTROLLER))
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Answered",
        "message": "",
        "lastTransitionTime": now(),
    }
    await kube.patch(check, {"status": {"conditions": [active]}}, "status")
    task = asyncio.create_task(_answer(kube, name))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _answer(kube: Kube, name: str) -> None:
    """Answer each Workload that has quota, by the version that the watch shows."""
    in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def say_ready(workload: Json) -> None:
        version = {"resourceVersion": workload["metadata"]["resourceVersion"]}
        states = [
            {**state, "state": "Ready", "message": "yes", "lastTransitionTime": now()}
            if state["name"] == name
            else state
            for state in workload["status"]["admissionChecks"]
        ]
        status = {"admissionChecks": states}
        async with in_flight:
            # A newer version comes by the watch.
            with suppress(RefusedError):
                patch = {"metadata": version, "status": status}
                await kube.patch(workload, patch, "status")

    listed = await kube.request("GET", _PATH)
    version = listed["metadata"]["resourceVersion"]
    async with (
        asyncio.TaskGroup() as tasks,
        aclosing(kube.watch(_PATH, version)) as events,
    ):
        async for event in events:
            if event["type"] != "DELETED" and _is_asked(event["object"], name):
                tasks.create_task(say_ready(event["object"]))


def _is_asked(workload: Json, name: str) -> bool:
    states = (workload.get("status") or {}).get("admissionChecks") or ()
    return queues.is_true(workload, "QuotaReserved") and any(
        (state["name"], state["state"]) == (name, "Pending") for state in states
    )
