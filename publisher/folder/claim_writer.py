"""Decisions in, ResourceClaims and confirmations out.

A gang's newest decision is carried out by one worker at a time: plan, write, confirm.
Nothing is confirmed before it is durable, and everything can be done twice, so the
process may end at any line. Knows no slices.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from typing import assert_never

from contracts.claim import ResourceClaim
from contracts.ids import GangUID
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    ClaimsReleased,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
)
from contracts.topics import CONFIRMATIONS, DECISIONS
from publisher.config import PublisherConfig
from publisher.errors import ClaimRefusedError, FolderError, PublisherError
from publisher.folder.files import Folder
from publisher.folder.known_claims import KnownClaims
from publisher.folder.lookup import fetch_sources
from publisher.folder.manifests import claims_of
from publisher.folder.plan_claims import is_written, plan_claims
from publisher.latest_queue import LatestQueue
from publisher.steps import Step, key_of
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.retry import retry
from runtime.run import Task
from runtime.waits import first_of
from runtime.wire import Outgoing

_PAUSE_S = 1.0
_SHOWN = 500

log = get_logger(__name__)


class ClaimWriter:
    """What is decided, what is written and what was said of it."""

    def __init__(
        self,
        config: PublisherConfig,
        bus: Bus,
        folder: Folder,
        known: KnownClaims,
        now: Callable[[], str],
    ) -> None:
        self._config = config
        self._bus = bus
        self._folder = folder
        self._known = known
        self._now = now
        self._confirmations: dict[GangUID, ConfirmationMessage] = {}
        self._decisions: LatestQueue[GangUID, DecisionMessage] = LatestQueue()
        self.counts: Counter[str] = Counter()
        """Messages taken in and refused, by entity."""

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        workers: dict[str, Task] = {
            f"claims-{index}": self._work for index in range(self._config.workers)
        }
        return {"decisions": self._follow, **workers}

    # --- messages in ---------------------------------------------------------------

    async def _follow(self, stop: asyncio.Event) -> None:
        """Take decisions in, once it is known what was confirmed before."""
        cluster = self._config.cluster
        decided: set[GangUID] | None = set()
        try:
            await self._read_confirmations(stop)
            batches = self._bus.read(DECISIONS, cluster, stop=stop, counts=self.counts)
            async for batch in batches:
                for incoming in batch.messages:
                    decision = incoming.message
                    if decision is not None:
                        await self._decisions.put(decision.uid, decision)
                        if decided is not None:
                            decided.add(decision.uid)
                if batch.caught_up and decided is not None:
                    for gang in sorted(self._known.gangs() - decided):
                        log.warning("claims.orphaned", gang_uid=gang)
                    decided = None
        finally:
            await self._decisions.close()

    async def _read_confirmations(self, stop: asyncio.Event) -> None:
        """Read what was confirmed; from then on only we confirm."""
        cluster = self._config.cluster
        async for batch in self._bus.read_existing(CONFIRMATIONS, cluster, stop=stop):
            for incoming in batch.messages:
                message = incoming.message
                if message is not None:
                    self._confirmations[message.uid] = message

    # --- one gang at a time ----------------------------------------------------------

    async def _work(self, stop: asyncio.Event) -> None:
        while (item := await self._decisions.take()) is not None:
            gang, decision = item
            again: DecisionMessage | None = None
            try:
                await self._settle(decision)
            except (BusError, FolderError) as error:
                log.warning("gang.delayed", gang_uid=gang, reason=str(error))
                again = decision
                await first_of(stop, within_s=_PAUSE_S)
            await self._decisions.done(gang, again)
        await stop.wait()

    async def _settle(self, decision: DecisionMessage) -> None:
        """Make the sink agree with a decision, then say so.

        Raises:
            BusError: nothing could be said or asked.
            FolderError: what is not wanted any more could not be removed.
        """
        confirmed = self._confirmations.get(decision.uid)
        match decision:
            case GangAllocated():
                if _is_void(decision, confirmed):
                    await self._remove(decision.uid)
                else:
                    await self._settle_allocation(decision)
            case GangReleased():
                await self._remove(decision.uid)
                if not isinstance(confirmed, ClaimsReleased):
                    await self._confirm(
                        ClaimsReleased(
                            cluster=decision.cluster,
                            namespace=decision.namespace,
                            uid=decision.uid,
                        )
                    )
            case GangPending() | GangRejected():
                await self._remove(decision.uid)
            case _:
                assert_never(decision)

    async def _settle_allocation(self, decision: GangAllocated) -> None:
        began = monotonic()
        written = AllocationWritten(
            cluster=decision.cluster,
            namespace=decision.namespace,
            uid=decision.uid,
            attempt=decision.attempt,
        )
        try:
            claims = await self._write(decision)
        except PublisherError as error:
            await self._give_up(decision, str(error))
            return
        if self._confirmations.get(decision.uid) != written:
            await self._confirm(written)
        if claims:
            log.info(
                "claims.written",
                gang_uid=decision.uid,
                gang=f"{decision.namespace}/{decision.name}",
                attempt=decision.attempt,
                claims=claims,
                write_ms=round((monotonic() - began) * 1000),
            )

    async def _write(self, decision: GangAllocated) -> int:
        """Write all claims of a gang; gives how many steps that took.

        Raises:
            PublisherError: it cannot be written, or not within the budget.
        """
        if is_written(decision, self._known.of_gang(decision.uid)):
            return 0
        sources = await fetch_sources(self._bus, decision)
        claims = claims_of(decision, sources, self._now())
        return await self._reach(decision.uid, claims)

    async def _remove(self, gang: GangUID) -> None:
        """Give up whatever the gang has.

        Raises:
            FolderError: not within the budget.
        """
        removed = await self._reach(gang, ())
        if removed:
            log.info("claims.removed", gang_uid=gang, claims=removed)

    async def _give_up(self, decision: GangAllocated, reason: str) -> None:
        """Leave nothing of an attempt behind and have the gang decided again."""
        try:
            await self._remove(decision.uid)
        except FolderError as error:
            log.error("claims.stranded", gang_uid=decision.uid, reason=str(error))  # noqa: TRY400 # the reason is the whole story
        log.error(
            "allocation.refused",
            gang_uid=decision.uid,
            attempt=decision.attempt,
            reason=reason[:_SHOWN],
        )
        await self._confirm(
            AllocationRefused(
                cluster=decision.cluster,
                namespace=decision.namespace,
                uid=decision.uid,
                attempt=decision.attempt,
                reason=reason[:_SHOWN],
            )
        )

    async def _reach(self, gang: GangUID, claims: Sequence[ResourceClaim]) -> int:
        """Plan and write, and after a failed write look and plan again."""
        keys = [key_of(claim) for claim in claims]

        async def attempt() -> int:
            plan = plan_claims(claims, self._known.of_gang(gang, keys), gang)
            if plan.refusals:
                raise ClaimRefusedError(plan.refusals)
            await self._carry_out(plan.steps)
            return len(plan.steps)

        budget_s = self._config.write_budget_s
        return await retry("claims", attempt, on=FolderError, budget_s=budget_s)

    async def _carry_out(self, steps: Sequence[Step[ResourceClaim]]) -> None:
        if not steps:
            return
        try:
            await asyncio.to_thread(self._folder.carry_out, steps)
        except FolderError:
            keys = [key_of(step.object) for step in steps]
            found = await asyncio.to_thread(self._folder.read_objects, keys)
            self._known.refresh(keys, found)
            raise
        self._known.apply(steps)

    async def _confirm(self, message: ConfirmationMessage) -> None:
        await self._bus.publish(Outgoing.of(CONFIRMATIONS, message))
        self._confirmations[message.uid] = message
        self.counts["conf"] += 1


def _is_void(decision: GangAllocated, confirmed: ConfirmationMessage | None) -> bool:
    """Whether this very attempt was given up before."""
    return (
        isinstance(confirmed, AllocationRefused | AllocationLost)
        and confirmed.attempt == decision.attempt
    )
