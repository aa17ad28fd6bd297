"""What is told of a node as its claims change between two looks."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from contracts.claim import ResourceClaim
from contracts.drift import DeviceDrift, DriftKind
from contracts.ids import (
    ClaimRef,
    ClaimUID,
    DeviceName,
    DriverName,
    Namespace,
    PoolName,
)
from nodeagent.drift import DeviceInUse
from nodeagent.health import Moment
from nodeagent.kubelet.drift_teller import DriftTeller
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice
from tests import builders

LASTS_S = 0.01
LOOKS = 6


class Node:
    """A node on which one claim runs as decided: kubelet, API server and records."""

    def __init__(self) -> None:
        self.asked = 0
        self.dropped: tuple[PreparedClaim, ...] = ()
        self._now_s = 0.0
        self.make("first")

    def make(self, uid: str) -> None:
        """Make the claim, anew if there is one, and let its pod run."""
        result = builders.result()
        made = builders.claim(uid=uid, allocated=builders.allocation(result))
        name = ClaimRef(Namespace(made.metadata.namespace), made.metadata.name)
        self._claim = made
        self._in_use = frozenset({DeviceInUse("team/pod", name, result.device_id)})
        ref = ClaimRef(name.namespace, name.name, ClaimUID(uid))
        record = SimpleNamespace(claim=ref, device_ids=(result.device_id,))
        self.checkpoint = SimpleNamespace(claims={uid: record}, refresh=lambda: None)
        self.driver = result.driver

    async def list_held(self, _: Any) -> tuple[frozenset[DeviceInUse], frozenset[Any]]:
        """Answer as kubelet does."""
        return self._in_use, frozenset()

    async def read(self, _: ClaimRef) -> ResourceClaim:
        """Answer as the API server does."""
        self.asked += 1
        return self._claim

    def now(self) -> Moment:
        """Let every look be later than the last, and all soon after the first."""
        self._now_s += LASTS_S
        return Moment(self._now_s, "now")


async def watch(node: Node, made_anew_after: int) -> list[tuple[DeviceDrift, ...]]:
    """Look some times; after so many the claim is another one of its name."""
    stop = asyncio.Event()
    told: list[tuple[DeviceDrift, ...]] = []

    def tell(drifts: tuple[DeviceDrift, ...]) -> None:
        told.append(drifts)
        if len(told) == made_anew_after:
            node.make("second")
        if len(told) == LOOKS:
            stop.set()

    some = cast("Any", node)
    teller = DriftTeller(
        some,
        some,
        [some],
        lasts_s=LASTS_S,
        clock=node.now,
        list_dropped=lambda _: node.dropped,
        tell=tell,
    )
    async with asyncio.timeout(60):
        await teller.run(stop)
    return told


async def test_a_claim_made_anew_under_its_name_is_no_drift() -> None:
    """What is known of a claim is of its uid; it is asked for once, then once more."""
    node = Node()
    assert await watch(node, made_anew_after=2) == [()] * LOOKS
    assert node.asked == 2


async def test_a_claim_of_a_driver_that_is_dropped_is_told() -> None:
    """Kubelet finds nobody to unprepare it, and its pod never ends."""
    node = Node()
    device = PreparedDevice(
        request="gpu", pool=PoolName("n-0"), device=DeviceName("gpu-0")
    )
    left = PreparedClaim(
        claim=ClaimRef(Namespace("team"), "left", ClaimUID("uid-left")),
        driver=DriverName("old.example.com"),
        devices=(device,),
        since="",
    )
    node.dropped = (left,)
    (drift,) = (await watch(node, made_anew_after=0))[-1]
    assert (drift.kind, drift.claim) == (DriftKind.DRIVER_GONE, "team/left")
    assert drift.device == left.device_ids[0]
