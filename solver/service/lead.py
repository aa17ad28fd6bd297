"""Who may publish decisions: the epoch, a lease that the server itself enforces.

The fence is one subject. Whoever writes it with the sequence of the last write leads;
every batch of decisions begins with such a write. A deposed solver's batch is refused
by the server, whatever the clocks say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from time import monotonic

from contracts.fence import MAX_EPOCH, EpochClaimed
from contracts.ids import ClusterName, DriverName
from contracts.topics import FENCE
from runtime.bus.bus import Bus
from runtime.errors import PublishRefusedError
from runtime.refusals import Refusals
from runtime.waits import first_of
from runtime.wire import Incoming, Outgoing, Refused

_TEND_S = 1.0
"""The longest time between two looks at the fence."""
_LAST_S = 1.0
"""So long who resigns waits for the batch that is under way."""


class Leadership:
    """Our side of the fence."""

    def __init__(
        self,
        bus: Bus,
        cluster: ClusterName,
        holder: str,
        lease_s: float,
        agent_drivers: Iterable[DriverName] = (),
    ) -> None:
        """`lease_s` is at most `MAX_LEASE_S`; `agent_drivers` is told to readers."""
        self._bus = bus
        self._cluster = cluster
        self._holder = holder
        self._lease_s = lease_s
        self._agent_drivers = tuple(sorted(agent_drivers))
        self._lock = asyncio.Lock()
        self._refusals = Refusals()
        self._sequence = 0
        self._claim_seen: EpochClaimed | None = None
        """What the fence says; None: nothing, or nothing that can be read."""
        self._last_epoch = 0
        self._claim_at = monotonic()
        self._read_to = self._since = 0
        self._began = 0
        self.epoch = 0
        """Our epoch; 0: we do not lead."""
        self._handed_over = asyncio.Event()
        """Another has let go of the epoch."""

    @property
    def leads(self) -> bool:
        """True if we hold the epoch, as far as we know."""
        return self.epoch > 0

    @property
    def caught_up(self) -> bool:
        """True if all that was decided before our epoch has been read."""
        return self._read_to >= self._since

    def note_fence(self, fence: Incoming[EpochClaimed] | Refused) -> None:
        """Take note of a write to the fence, ours or another's; call it for each.

        One that cannot be read is that of a holder whom we do not know.
        """
        claim = None if isinstance(fence, Refused) else fence.message
        self._read_to = max(self._read_to, fence.sequence)
        if fence.sequence < self._sequence:
            return
        if self.leads and not self._is_ours(claim) and fence.sequence > self._sequence:
            self.epoch = 0
        if not self.leads:
            self._sequence = fence.sequence
            self._claim_seen = claim
            self._claim_at = monotonic()
            if claim is not None and not claim.lease_s:
                self._handed_over.set()
        if claim is not None:
            self._last_epoch = claim.epoch

    def _is_ours(self, claim: EpochClaimed | None) -> bool:
        ours = (self.epoch, self._holder)
        return claim is not None and (claim.epoch, claim.holder) == ours

    async def tend(self) -> bool:
        """Renew our lease, or take it over when it ran out; True: we lead anew now."""
        async with self._lock:
            if self.leads:
                await self._claim(self.epoch)
                return False
            fence = await self._bus.read_last_or_refused(
                FENCE, self._cluster, refusals=self._refusals
            )
            if fence is not None and fence.sequence > self._sequence:
                self.note_fence(fence)
            if self._held_by_another():
                return False
            # After the last one the first comes again: only that they differ counts.
            return await self._claim(self._last_epoch % MAX_EPOCH + 1)

    @property
    def is_free(self) -> bool:
        """True if nobody holds the epoch, as far as we have read."""
        return not (self.leads or self._held_by_another())

    def _held_by_another(self) -> bool:
        if not self._sequence:
            return False  # nobody ever led
        # Nobody gets more time than we would take ourselves: neither whoever cannot be
        # understood nor a long lease, as whoever leads renews it every second.
        lease_s = self._lease_s
        if self._claim_seen is not None:
            if self._claim_seen.holder == self._holder:
                return False
            lease_s = min(lease_s, self._claim_seen.lease_s)
        return monotonic() - self._claim_at <= lease_s

    async def _claim(self, epoch: int, *, lease_s: float | None = None) -> bool:
        try:
            self._sequence = await self._bus.publish(self._fence(epoch, lease_s))
        except PublishRefusedError:
            self.epoch = 0
            return False
        anew = self.epoch != epoch
        if anew:
            self._since = self._sequence
        self.epoch = epoch
        return anew

    async def wait_handed_over(self, stop: asyncio.Event) -> None:
        """Wait until `tend` is due: soon, and at once when another lets go."""
        pause_s = min(self._lease_s / 3, _TEND_S)
        await first_of(self._handed_over, stop, within_s=pause_s)
        self._handed_over.clear()

    async def resign(self, decided_last: asyncio.Event) -> None:
        """Let another take over at once, so that it need not wait for the lease.

        What is under way is published first if it is soon (`decided_last` is set), so
        that nobody has to work it out again.
        """
        if self.leads:
            await first_of(decided_last, within_s=_LAST_S)
        async with self._lock:
            if self.leads:
                await self._claim(self.epoch, lease_s=0.0)
            self.epoch = 0

    def begin(self) -> None:
        """Begin to work something out: it is published in this epoch or not at all."""
        self._began = self.epoch

    async def publish(self, decisions: Sequence[Outgoing]) -> int:
        """Publish decisions as one fenced batch; return the sequence of the first.

        Raises:
            PublishRefusedError: nothing was stored; `stale`: we do not lead any more.
            BusUnavailableError: it is not known whether they were stored.
        """
        async with self._lock:
            if not self.leads or self.epoch != self._began:
                # We know the fence of whoever leads now: the server would take it.
                subject = FENCE.subject(self._cluster)
                reason = f"epoch {self._began}, in which this was decided, is over"
                raise PublishRefusedError(subject, "stale", reason)
            batch = [self._fence(self.epoch, None), *decisions]
            try:
                last = await self._bus.publish_batch(batch)
            except PublishRefusedError as error:
                if error.kind == "stale":
                    self.epoch = 0
                raise
            self._sequence = last - len(batch) + 1
            return self._sequence + 1

    def _fence(self, epoch: int, lease_s: float | None) -> Outgoing:
        claim = EpochClaimed(
            cluster=self._cluster,
            epoch=epoch,
            holder=self._holder,
            lease_s=self._lease_s if lease_s is None else lease_s,
            agent_drivers=self._agent_drivers,
        )
        return Outgoing.of(FENCE, claim, expected_last_subject_sequence=self._sequence)
