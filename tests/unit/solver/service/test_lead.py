"""Nobody is kept from leading for ever, whatever the fence says."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec import structs

from contracts.errors import DecodeError
from contracts.fence import MAX_EPOCH, MAX_LEASE_S, EpochClaimed
from contracts.topics import FENCE
from runtime.bus.bus import Bus
from runtime.wire import Incoming, Outgoing, Refused
from solver.service import lead as lead_module
from solver.service.lead import Leadership
from tests.builders.problems import CLUSTER

LEASE_S = 10.0
SUBJECT = FENCE.subject(CLUSTER)


class Fence:
    """The one subject; a clock beside it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.last: Incoming[EpochClaimed] | Refused | None = None

    async def read_last_or_refused(self, *_: object, **__: object) -> object:
        """Return what is stored."""
        return self.last

    async def publish(self, message: Outgoing) -> int:
        """Store a claim behind the one that it names."""
        sequence = 0 if self.last is None else self.last.sequence
        assert message.expected_last_subject_sequence == sequence
        self.last = claimed(FENCE.codec.decode(message.data), sequence + 1)
        return sequence + 1


def claimed(claim: EpochClaimed, sequence: int) -> Incoming[EpochClaimed]:
    """Read a claim from the bus."""
    return Incoming[Any](
        topic=FENCE, names=(CLUSTER,), message=claim, data=b"", sequence=sequence
    )


@pytest.fixture
def fence(monkeypatch: pytest.MonkeyPatch) -> Fence:
    """A fence on which nothing is written."""
    made = Fence()
    monkeypatch.setattr(lead_module, "monotonic", lambda: made.now)
    return made


def candidate(fence: Fence) -> Leadership:
    """Make somebody who wants to lead."""
    return Leadership(cast("Bus", fence), CLUSTER, "us", LEASE_S)


async def test_a_fence_that_cannot_be_read_holds_for_one_lease(fence: Fence) -> None:
    """It may be that of a newer version, who renews it."""
    fence.last = Refused(subject=SUBJECT, reason="not of this type", sequence=7)
    leadership = candidate(fence)
    assert not await leadership.tend()
    fence.now += LEASE_S / 2
    fence.last = Refused(subject=SUBJECT, reason="not of this type", sequence=8)
    assert not await leadership.tend()
    fence.now += LEASE_S - 1
    assert not await leadership.tend()
    fence.now += 2
    assert await leadership.tend()
    assert leadership.leads


async def test_a_lease_holds_no_longer_than_ours(fence: Fence) -> None:
    """A leader renews every second: one word of minutes ago is no leader."""
    claim = EpochClaimed(
        cluster=CLUSTER, epoch=4, holder="x", lease_s=float(MAX_LEASE_S)
    )
    fence.last = claimed(claim, 7)
    leadership = candidate(fence)
    assert not await leadership.tend()
    fence.now += LEASE_S + 1
    assert await leadership.tend()
    assert leadership.epoch == 5


async def test_after_the_last_epoch_comes_another(fence: Fence) -> None:
    """The largest number that somebody wrote ends nothing."""
    claim = EpochClaimed(cluster=CLUSTER, epoch=MAX_EPOCH, holder="x", lease_s=1.0)
    fence.last = claimed(claim, 7)
    leadership = candidate(fence)
    assert not await leadership.tend()
    fence.now += 2
    assert await leadership.tend()
    assert leadership.epoch == 1
    assert not await leadership.tend()
    assert leadership.leads


async def test_whoever_writes_behind_us_deposes_us(fence: Fence) -> None:
    """Readable or not; what we wrote ourselves does not."""
    leadership = candidate(fence)
    assert await leadership.tend()
    own = fence.last
    assert isinstance(own, Incoming)
    leadership.note_fence(own)
    assert leadership.leads
    leadership.note_fence(Refused(subject=SUBJECT, reason="junk", sequence=9))
    assert not leadership.leads


@pytest.mark.parametrize(
    ("epoch", "lease_s"), [(0, 1.0), (MAX_EPOCH + 1, 1.0), (1, -1.0), (1, 1e12)]
)
def test_a_claim_has_bounds(epoch: int, lease_s: float) -> None:
    """What is beyond them is not read."""
    claim = EpochClaimed(cluster=CLUSTER, epoch=epoch, holder="x", lease_s=lease_s)
    with pytest.raises(DecodeError, match=r"epoch|leaseS"):
        FENCE.codec.decode(FENCE.codec.encode(claim))


async def test_who_waits_is_told_at_once_that_another_lets_go(
    fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And may claim: what it read of the fence says that nobody holds it."""
    monkeypatch.setattr(lead_module, "_TEND_S", 3_600.0)
    held = EpochClaimed(cluster=CLUSTER, epoch=4, holder="x", lease_s=1e4)
    us = Leadership(cast("Bus", fence), CLUSTER, "us", 3 * 3_600.0)
    us.note_fence(claimed(held, 7))
    assert not us.is_free
    waiting = asyncio.create_task(us.wait_handed_over(asyncio.Event()))
    await asyncio.sleep(0)
    assert not waiting.done()
    us.note_fence(claimed(structs.replace(held, lease_s=0.0), 8))
    fence.now += 0.001
    async with asyncio.timeout(60):
        await waiting
    assert us.is_free


async def test_who_resigns_publishes_first_what_is_under_way(fence: Fence) -> None:
    """It holds the epoch until then, and says in the end that nobody does."""
    us = candidate(fence)
    assert await us.tend()
    decided_last = asyncio.Event()
    resigning = asyncio.create_task(us.resign(decided_last))
    await asyncio.sleep(0)
    assert us.leads
    decided_last.set()
    await resigning
    assert not us.leads
    assert isinstance(fence.last, Incoming)
    assert fence.last.message is not None
    assert fence.last.message.lease_s == 0
