"""Decisions in, ResourceClaims and confirmations out.

A gang's newest decision is carried out by one worker at a time: plan, write, confirm.
Nothing is confirmed before it is durable, and everything can be done twice, so the
process may end at any line. Knows no slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

from contracts.claim import ResourceClaim
from contracts.ids import GangKey
from contracts.lifecycle import GangRecord, without_growth
from contracts.messages import (
    MAX_REASON,
    AllocationRefused,
    AllocationWritten,
    ClaimsReleased,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangReleased,
)
from contracts.topics import CONFIRMATIONS, DECISIONS
from publisher.config import PublisherConfig
from publisher.errors import (
    ClaimRefusedError,
    DecisionError,
    FolderError,
    PublisherError,
)
from publisher.folder.files import Folder
from publisher.folder.known_claims import KnownClaims
from publisher.folder.lookup import fetch_sources
from publisher.folder.manifests import build_claims
from publisher.folder.plan_claims import is_written, plan_claims
from publisher.key_queue import KeyQueue
from publisher.steps import Step, key_of
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.retry import retry
from runtime.waits import first_of
from runtime.wire import Outgoing

_PAUSE_S = 1.0

log = get_logger(__name__)


class ClaimWriter:
    """Carries out decisions, one worker a gang, and confirms them."""

    def __init__(
        self,
        config: PublisherConfig,
        bus: Bus,
        folder: Folder,
        claims: KnownClaims,
        now: Callable[[], str],
    ) -> None:
        self._config = config
        self._bus = bus
        self._folder = folder
        self._claims = claims
        self._now = now
        self._refusals = Refusals()
        self._records: dict[GangKey, GangRecord] = {}
        """What was decided for gangs, and what was confirmed of it."""
        self._queue: KeyQueue[GangKey] = KeyQueue("gangs-written")
        """Gangs of which something was decided."""
        self.has_read = False
        """True if all that was decided and confirmed before is known."""

    # --- messages in ---------------------------------------------------------------

    async def follow(self, stop: asyncio.Event) -> None:
        """Take decisions in, once it is known what was confirmed before."""
        cluster = self._config.cluster
        orphans: set[GangKey] | None = set(self._claims.gangs())
        """Gangs with claims of which no decision was read; None: all were read."""
        try:
            # First what was confirmed, so that nothing is confirmed twice.
            finished = await self._read_confirmations(stop)
            async for batch in self._bus.read(DECISIONS, cluster, stop=stop):
                for incoming in batch.messages:
                    decision = incoming.message
                    if decision is None:
                        continue
                    with self._refusals.guard(incoming):
                        if orphans:
                            orphans.discard(decision.key)
                        if str(decision.key) in finished:
                            finished.discard(str(decision.key))
                            if isinstance(decision, GangReleased):
                                continue  # all of it was done before we began
                        self._apply_message(decision, incoming.sequence)
                        await self._queue.put(decision.key)
                # Then, once: whose claims are these of whom no decision tells?
                self.has_read = self.has_read or batch.caught_up
                if batch.caught_up and orphans is not None:
                    for gang in sorted(orphans):
                        log.warning("claims.orphaned", gang=str(gang))
                    orphans, finished = None, set()
        finally:
            await self._queue.close()

    async def _read_confirmations(self, stop: asyncio.Event) -> set[str]:
        """Read what was confirmed; from then on only we confirm.

        Returns the gangs whose claims were released. There may be very many: of them
        nothing is kept but their names.
        """
        finished: set[str] = set()
        cluster = self._config.cluster
        async for batch in self._bus.read_existing(CONFIRMATIONS, cluster, stop=stop):
            for incoming in batch.messages:
                if isinstance(incoming.message, ClaimsReleased):
                    finished.add(str(incoming.message.key))
                elif incoming.message is not None:
                    with self._refusals.guard(incoming):
                        self._apply_message(incoming.message, incoming.sequence)
        return finished

    def _apply_message(
        self, message: DecisionMessage | ConfirmationMessage, sequence: int
    ) -> None:
        """Take in what was said of a gang."""
        record = self._records.get(message.key) or GangRecord.of(message)
        self._records[message.key] = record.apply(message, sequence)

    # --- one gang at a time ----------------------------------------------------------

    async def work(self, stop: asyncio.Event) -> None:
        """Work on one gang after the other, until no more decisions are read."""
        while (gang := await self._queue.take()) is not None:
            again = False
            with self._refusals.guard(f"gang/{gang}"):
                again = await self._try_gang(gang, stop)
            await self._queue.done(gang)
            if again:
                await self._queue.put(gang)
        await stop.wait()

    async def _try_gang(self, gang: GangKey, stop: asyncio.Event) -> bool:
        """Carry out what was decided for a gang; True: it is to be tried again.

        What cannot be handled waits for the next decision, and holds up no other.
        """
        try:
            record = self._records.get(gang)
            if record is not None:
                await self._carry_out(record)
                if self._records[gang].is_finished:
                    del self._records[gang]
        except (BusError, FolderError) as error:
            log.warning("gang.delayed", gang_uid=gang.uid, reason=str(error))
            await first_of(stop, within_s=_PAUSE_S)
            return True
        return False

    async def _carry_out(self, record: GangRecord) -> None:
        """Make the sink agree with what was decided for a gang, then say so.

        Raises:
            BusError: nothing could be said or asked.
            FolderError: what is not wanted any more could not be removed, or what
                runs could not be left as it was.
        """
        decision = record.placed
        if decision is not None:
            await self._carry_out_allocation(record, decision)
            return
        # Its claims go: it waits, is over, or the attempt was given up before.
        await self._remove_claims(record.key)
        if record.is_over and not record.is_finished:
            await self._publish_confirmation(
                ClaimsReleased(
                    cluster=self._config.cluster,
                    namespace=record.namespace,
                    uid=record.uid,
                )
            )

    async def _carry_out_allocation(
        self, record: GangRecord, decision: GangAllocated
    ) -> None:
        began = monotonic()
        written = AllocationWritten(
            cluster=decision.cluster,
            namespace=decision.namespace,
            uid=decision.uid,
            attempt=decision.attempt,
        )
        try:
            claims = await self._write_claims(
                decision, restores=record.is_growth_refused
            )
        except PublisherError as error:
            if record.is_written and isinstance(error, FolderError):
                raise  # its pods may run: what is missing is written in time
            if not await self._keep_claims(decision, str(error)):
                await self._give_up(decision, str(error))
            return
        if not record.is_written:
            await self._publish_confirmation(written)
        if claims:
            log.info(
                "claims.written",
                gang_uid=decision.uid,
                gang=f"{decision.namespace}/{decision.name}",
                attempt=decision.attempt,
                claims=claims,
                write_ms=round((monotonic() - began) * 1000),
            )

    async def _write_claims(
        self, decision: GangAllocated, *, restores: bool = False
    ) -> int:
        """Write all claims of a gang; returns how many steps that took.

        `restores`: claims that have their allocation stay as they are, and what is to
        be written is tried once.

        Raises:
            PublisherError: it cannot be written, or not within the budget.
        """
        there = self._claims.of_gang(decision.key)
        if is_written(decision, there, any_attempt=restores):
            return 0
        sources = await fetch_sources(self._bus, decision, self._refusals)
        claims = build_claims(decision, sources, self._now())
        if restores:
            return await self._reconcile_once(decision.key, claims, any_attempt=True)
        return await self._reconcile_claims(decision.key, claims)

    async def _remove_claims(self, gang: GangKey) -> None:
        """Give up whatever the gang has.

        Raises:
            FolderError: not within the budget.
        """
        removed = await self._reconcile_claims(gang, ())
        if removed:
            log.info("claims.removed", gang_uid=gang.uid, claims=removed)

    async def _keep_claims(self, decision: GangAllocated, reason: str) -> bool:
        """Leave a gang that cannot grow as it was; False: that is impossible, too.

        Its pods run, so only what cannot be theirs is a reason to take their claims.

        Raises:
            FolderError: the folder cannot be put back now; all of it is tried again.
        """
        if not decision.kept:
            return False
        try:
            await self._write_claims(without_growth(decision), restores=True)
        except (ClaimRefusedError, DecisionError):
            return False
        await self._refuse_decision(decision, reason, keeps=True)
        return True

    async def _give_up(self, decision: GangAllocated, reason: str) -> None:
        """Leave nothing of an attempt behind and have the gang decided again."""
        try:
            await self._remove_claims(decision.key)
        except FolderError as error:
            log.error("claims.stranded", gang_uid=decision.uid, reason=str(error))  # noqa: TRY400 # the reason is the whole story
        await self._refuse_decision(decision, reason, keeps=False)

    async def _refuse_decision(
        self, decision: GangAllocated, reason: str, *, keeps: bool
    ) -> None:
        log.error(
            "allocation.refused",
            gang_uid=decision.uid,
            attempt=decision.attempt,
            reason=reason[:MAX_REASON],
            keeps=keeps,
        )
        await self._publish_confirmation(
            AllocationRefused(
                cluster=decision.cluster,
                namespace=decision.namespace,
                uid=decision.uid,
                attempt=decision.attempt,
                reason=reason[:MAX_REASON],
                keeps=keeps,
            )
        )

    async def _reconcile_claims(
        self, gang: GangKey, claims: Sequence[ResourceClaim]
    ) -> int:
        """Plan and write, and after a failed write look and plan again."""
        return await retry(
            "claims",
            lambda: self._reconcile_once(gang, claims),
            on=FolderError,
            budget_s=self._config.write_budget_s,
        )

    async def _reconcile_once(
        self,
        gang: GangKey,
        claims: Sequence[ResourceClaim],
        *,
        any_attempt: bool = False,
    ) -> int:
        observed = self._claims.of_gang(gang, map(key_of, claims))
        plan = plan_claims(claims, observed, gang.uid, any_attempt=any_attempt)
        if plan.refusals:
            raise ClaimRefusedError(plan.refusals)
        await self._take_steps(plan.steps)
        return len(plan.steps)

    async def _take_steps(self, steps: Sequence[Step[ResourceClaim]]) -> None:
        if not steps:
            return
        try:
            await asyncio.to_thread(self._folder.carry_out, steps)
        except FolderError:
            # Some steps may have been carried out: see which, before anybody plans.
            keys = [key_of(step.object) for step in steps]
            objects = await asyncio.to_thread(self._folder.read_objects, keys)
            self._claims.refresh(keys, objects)
            raise
        self._claims.apply(steps)

    async def _publish_confirmation(self, message: ConfirmationMessage) -> None:
        sequence = await self._bus.publish(Outgoing.of(CONFIRMATIONS, message))
        self._apply_message(message, sequence)
