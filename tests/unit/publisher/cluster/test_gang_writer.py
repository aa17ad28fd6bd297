"""What the writer of gangs does when nothing that it does changes anything."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from contracts.codec import to_builtins
from contracts.ids import ClusterName
from contracts.process.bus import Bus
from publisher.api import KubernetesApi
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.gang_writer import GangWriter
from publisher.cluster.observed import Observed
from publisher.cluster.state import StatePublisher
from publisher.cluster.teller import Teller
from publisher.errors import ConflictError
from publisher.kinds import RESOURCE_CLAIM
from tests import builders
from tests.builders.pods import real_claim, waiting_pod

NS = builders.NAMESPACE
CLUSTER = ClusterName("east")
NOW = "2026-11-20T12:00:00Z"
MANY = 1000


class RestoredServer:
    """An API server that went back in time: what we have seen it will not write."""

    def __init__(self, claim: dict[str, Any]) -> None:
        self.claim = claim
        self.asked = 0

    async def patch(self, *_: object, **__: object) -> dict[str, Any]:
        """Refuse a version that is not the one it has."""
        self.asked += 1
        raise ConflictError("patch", "the object has been modified")

    async def get(self, *_: object) -> dict[str, Any]:
        """Give what it has."""
        return self.claim


async def ignore(_: object) -> None:
    """Nobody wants to know."""


async def test_a_step_that_changes_nothing_is_not_repeated_at_once() -> None:
    claim = real_claim("pod-1-gpus", managed=False, version=2)
    observed = Observed(RESOURCE_CLAIM)
    observed.view.apply_pod(f"{NS}/pod-1", waiting_pod("pod-1", templates=["gpus"]))
    observed.view.apply_claim(f"{NS}/pod-1-gpus", claim)
    old = to_builtins(claim) | {"apiVersion": "resource.k8s.io/v1"}
    old |= {"kind": "ResourceClaim"}
    old["metadata"]["resourceVersion"] = "1"
    server = RestoredServer(old)
    api, bus = cast("KubernetesApi", server), cast("Bus", None)
    gangs = GangBus(CLUSTER, bus, changed=ignore)
    writer = GangWriter(
        CLUSTER,
        api=api,
        observed=observed,
        gangs=gangs,
        state=StatePublisher(CLUSTER, bus),
        teller=Teller(api, observed, "one", lambda: NOW),
        owns=lambda _: True,
        now=lambda: NOW,
    )
    await writer.lead(leads=True)
    (work,) = writer.tasks(1).values()
    task = asyncio.ensure_future(work(asyncio.Event()))
    for _ in range(MANY):
        await asyncio.sleep(0)
    task.cancel()
    await writer.close()
    assert 1 <= server.asked <= 3
