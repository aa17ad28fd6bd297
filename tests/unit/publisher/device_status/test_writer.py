"""Claims are looked at when something may have to be said in them, and not else."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from structlog.testing import capture_logs

from contracts.claim import ResourceClaim
from contracts.codec import to_builtins
from contracts.ids import DeviceID, DeviceName, NodeName, PoolID, PoolName
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from publisher.device_status.writer import DeviceStatusWriter
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.eviction_budget import EvictionBudget
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, NotFoundError, UnavailableError
from runtime.kube.kinds import RESOURCE_CLAIM
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.builders.plans import NOW, view_of
from tests.builders.pods import real_claim

NODE = NodeName(builders.NODE)
POOL = builders.pool()
POOL_ID = PoolID(POOL.driver, POOL.name)
KEY = f"{builders.NAMESPACE}/c"
HELD = real_claim("c", allocated=builders.allocation())
FREE = real_claim("c")


class Api:
    """Notes what is applied; may answer with an error."""

    def __init__(self, error: ApiError | None) -> None:
        self.keys: list[str] = []
        self.keeps = True
        """False as if the gate of `status.devices` were off."""
        self._error = error

    async def apply(self, _kind: object, key: str, body: Any, **_: str) -> Any:
        """Take a status, and answer with what is stored."""
        assert body["status"]["devices"]
        self.keys.append(key)
        if self._error is not None:
            raise self._error
        return body if self.keeps else {"status": {}}


class Writer:
    """A writer with one claim to look at."""

    def __init__(
        self, claim: ResourceClaim, *, sick: bool = True, error: ApiError | None = None
    ) -> None:
        announced = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
        pools = DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(POOL,))
        announced.apply_inventory(NODE, pools)
        device = DeviceID(POOL.driver, POOL.name, DeviceName("gpu-0"))
        health = DeviceHealth(
            device=device, verdict="Unhealthy", taints=(builders.taint(),)
        )
        judged = HealthJudged(
            cluster=CLUSTER, node=NODE, devices=(health,) if sick else ()
        )
        announced.apply_health(NODE, judged)
        self.raw: dict[str, Any] = to_builtins(to_kubernetes(claim))
        self.api = Api(error)
        self.writer = DeviceStatusWriter(
            cast("KubernetesApi", self.api),
            RESOURCE_CLAIM,
            view_of(claims=[claim]),
            announced,
            lambda: NOW,
        )

    async def write(self) -> list[str]:
        """Write what is due; returns the claims that were written so far."""
        stop = asyncio.Event()
        task = asyncio.ensure_future(self.writer.write(stop))
        for _ in range(20):
            await asyncio.sleep(0)
        stop.set()
        await task
        return self.api.keys


async def test_a_claim_with_a_sick_device_is_written() -> None:
    """When it changes, and when the health of its pool does."""
    changed = Writer(HELD)
    changed.writer.look_at(KEY, changed.raw)
    assert await changed.write() == [KEY]
    judged = Writer(HELD)
    judged.writer.hear(NODE, frozenset({POOL_ID}))
    assert await judged.write() == [KEY]


async def test_a_claim_of_which_nothing_is_to_be_said_is_not_looked_at() -> None:
    """It holds nothing, or nothing that is sick; and no pool changed."""
    for claim, sick in ((FREE, True), (HELD, False)):
        idle = Writer(claim, sick=sick)
        idle.writer.look_at(KEY, idle.raw)
        idle.writer.hear(NODE, frozenset())
        assert not idle.writer._due
        assert await idle.write() == []


async def test_a_claim_of_another_pool_is_not_looked_at() -> None:
    """All claims are gone through once, by what they hold."""
    idle = Writer(HELD)
    idle.writer.hear(NODE, frozenset({PoolID(POOL.driver, PoolName("other"))}))
    assert await idle.write() == []


async def test_a_claim_that_is_another_by_now_is_left_to_the_watch() -> None:
    """Any other failure is tried again."""
    gone = Writer(HELD, error=NotFoundError("apply", "no"))
    gone.writer.look_at(KEY, gone.raw)
    assert await gone.write() == [KEY]
    assert not gone.writer._due
    away = Writer(HELD, error=UnavailableError("apply", "no"))
    away.writer.look_at(KEY, away.raw)
    await away.write()
    assert list(away.writer._due) == [KEY]


async def test_what_a_gate_drops_is_not_said_to_be_written() -> None:
    """Once, as it holds of all claims."""
    written, dropped = Writer(HELD), Writer(HELD)
    dropped.api.keeps = False
    for writer, event in ((written, "written"), (dropped, "dropped")):
        with capture_logs() as logs:
            writer.writer.look_at(KEY, writer.raw)
            assert await writer.write() == [KEY]
        events = [log["event"] for log in logs]
        assert events == [f"device_status.{event}"]
    with capture_logs() as logs:
        dropped.writer.look_at(KEY, dropped.raw)
        await dropped.write()
    assert logs == []
