"""Answers PodSchedulingContexts and allocates classic claims, by decisions on the bus.

Follows while the service runs, writes while it leads. A conflict is left to the watch:
what has changed is planned anew. [io]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from contracts.ids import ClusterName
from contracts.messages import (
    MAX_REASON,
    AllocationRefused,
    ClaimsReleased,
    GatesOpened,
)
from contracts.workload import Pod
from publisher.classic.known import ClassicView, claim_group
from publisher.classic.objects import (
    CONTEXT,
    ClassicClaim,
    finalizer_of,
    write_allocation,
    write_deallocation,
    write_unsuitable,
)
from publisher.classic.plan_claim import plan_claim
from publisher.classic.plan_gang import Answer, Steps, Told, Write, plan_gang
from publisher.classic.submissions import Look, WaitingPod
from publisher.cluster.event_writer import EventWriter
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.state_publisher import StatePublisher
from publisher.errors import NotLeadingError
from publisher.gangs.notes import Note, Subject
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, is_done
from publisher.kube.changes import Change, ChangePage
from runtime.errors import BusError
from runtime.kube.api import Json, KubernetesApi
from runtime.kube.errors import ApiError, ConflictError, InvalidError, NotFoundError
from runtime.kube.kinds import RESOURCE_CLAIM, Kind
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of

_LOOK_S = 10.0
"""How often everything is looked at; what changes is looked at at once."""
_PAUSE_S = 2.0
"""How long a gang is left alone that could not go on."""
_STEPS = 20
"""Steps of one gang before others have their turn."""

log = get_logger(__name__)


class ClassicController:
    """The gangs of classic claims, and their objects."""

    def __init__(
        self,
        cluster: ClusterName,
        leads: asyncio.Event,
        *,
        api: KubernetesApi,
        kinds: dict[str, Kind],
        view: ClassicView,
        queue: GroupQueue,
        gangs: GangBus,
        state: StatePublisher,
        events: EventWriter,
        now: Callable[[], str],
    ) -> None:
        """`kinds` are those that are followed, in the version that is served."""
        self._cluster = cluster
        self._leads = leads
        self._api = api
        self._kinds = kinds
        self._view = view
        self._queue = queue
        self._gangs = gangs
        self._state = state
        self._events = events
        self._now = now
        self._answered: dict[str, tuple[str, ...]] = {}
        """By uid of a pod: which nodes were asked about when a node was left to it."""
        self._refusals = Refusals()

    # --- what is followed -------------------------------------------------------------

    async def take(self, page: ChangePage) -> None:
        """Take in what has changed, and have it told on the bus."""
        for change in page.changes:
            await self._take_change(change, synced=page.synced)

    async def _take_change(self, change: Change, *, synced: bool) -> None:
        concerned: frozenset[GroupKey] = frozenset()
        with self._refusals.guard(f"{change.kind}/{change.key}"):
            concerned = self._view.take(change)
            told = self._view.to_v1(change)
            await self._state.take(ChangePage(told, synced))
        await self._queue.add(concerned)

    # --- while it leads ---------------------------------------------------------------

    async def lead(self, lost: asyncio.Event) -> None:
        """Let the workers write, until `lost` is set."""
        self._leads.set()
        try:
            while not lost.is_set():
                claims = map(claim_group, self._view.claims())
                known = {*self._view.groups(), *self._gangs.groups(), *claims}
                await self._queue.add(sorted(known))
                await first_of(lost, within_s=_LOOK_S)
        finally:
            self._leads.clear()

    async def work(self, stop: asyncio.Event) -> None:
        """Work on gangs, one after the other, until the queue is closed."""
        del stop  # the queue is closed then
        while (group := await self._queue.take()) is not None:
            again = False
            try:
                with self._refusals.guard(f"gang/{group}") as guarded:
                    again = await self._try_on(group)
                if guarded.refused is not None:
                    self._queue.rest(group, _PAUSE_S)
            finally:
                await self._queue.done(group, again=again)

    async def _try_on(self, group: GroupKey) -> bool:
        """Work on a gang; what fails is tried again after a pause."""
        try:
            return await self._work_on(group)
        except NotLeadingError:
            return False
        except (ApiError, BusError) as error:
            reason = str(error)[:MAX_REASON]
            log.warning("classic.delayed", gang=str(group), reason=reason)
            self._queue.rest(group, _PAUSE_S)
            return False

    async def _work_on(self, group: GroupKey) -> bool:
        """Do what comes next until nothing does; True: there is more to do."""
        for _ in range(_STEPS):
            if not self._leads.is_set():
                return False
            try:
                if not await self._take_step(group):
                    return False
            except (ConflictError, NotFoundError):
                return False  # the watch will say what is there instead
        return True

    async def _take_step(self, group: GroupKey) -> bool:
        """Do what comes next; False: nothing does until something changes."""
        claim = self._claim_of(group)
        if claim is not None and await self._free(claim):
            return True
        steps = plan_gang(self._look_at(group, claim))
        for told in steps.told:
            await self._events.tell(_note(told))
        if not steps.is_nothing:
            await self._carry_out(group, steps)
        return not steps.is_nothing

    def _claim_of(self, group: GroupKey) -> ClassicClaim | None:
        """Return the claim that a key of the queue is about; None: it is about pods."""
        key = f"{group.namespace}/{group.name}"
        return self._view.claim(key) if group == claim_group(key) else None

    def _look_at(self, group: GroupKey, claim: ClassicClaim | None) -> Look:
        pods = self._view.pods(group)
        alive = tuple(pod for pod in pods if not is_done(pod))
        waiting = tuple(
            found for pod in alive if (found := self._read_waiting(pod)) is not None
        )
        is_alone = claim is not None and claim.is_immediate
        return Look(
            cluster=self._cluster,
            group=group,
            now=self._now(),
            alive=alive,
            waiting=waiting,
            lacking=tuple(p.metadata.name for p in alive if self._view.lacks_claims(p)),
            claim=claim if is_alone else None,
            records=self._gangs.of_group(group),
            answered=self._answered,
            forgotten=partial(self._gangs.forgotten, group.namespace),
        )

    def _read_waiting(self, pod: Pod) -> WaitingPod | None:
        found = self._view.claims_of(pod)
        pending = {name: c for name, c in found.items() if c.is_pending}
        if not pending:
            return None
        faults = (f"{c.name}: {c.fault}" for c in pending.values() if c.spec is None)
        return WaitingPod(
            pod=pod,
            membership=self._view.membership(pod),
            claims=pending,
            faults=tuple(faults),
            context=self._view.context(pod),
        )

    # --- what is done -----------------------------------------------------------------

    async def _carry_out(self, group: GroupKey, steps: Steps) -> None:
        records = self._gangs.of_group(group)
        for write in steps.writes:
            try:
                await self._allocate(write)
            except InvalidError as error:
                await self._refuse(write, records, str(error))
                return
        for answer in steps.answers:
            await self._answer(answer)
        for message in steps.messages:
            if isinstance(message, ClaimsReleased):
                # What its claims still hold is told before they count no longer.
                await self._state.wait_published()
            await self._gangs.say(message, records)
            log.info(
                "gang.told",
                message=type(message).__name__,
                gang=str(group),
                about="/".join(message.address[1:]),
            )
        if steps.opens is not None:
            await self._open(steps.opens, records)
        await asyncio.sleep(0)

    async def _open(
        self, record: PodGangRecord, records: Iterable[PodGangRecord]
    ) -> None:
        message = GatesOpened(
            cluster=self._cluster,
            namespace=record.namespace,
            uid=record.uid,
            attempt=record.attempt,
            state=await self._state.wait_published(),
            pods=len(record.pods),
        )
        await self._gangs.say(message, records)

    async def _refuse(
        self, write: Write, records: Iterable[PodGangRecord], reason: str
    ) -> None:
        """Have it decided again: the API server does not take the allocation."""
        about = (r for r in records if r.in_force is not None and not r.is_written)
        for record in about:
            message = AllocationRefused(
                cluster=self._cluster,
                namespace=record.namespace,
                uid=record.uid,
                attempt=record.attempt,
                reason=f"{write.claim.key}: {reason}"[:MAX_REASON],
            )
            await self._gangs.say(message, records)

    async def _allocate(self, write: Write) -> None:
        """Protect a claim, then write what it is given, as upstream's library does."""
        claim = await self._protect(write.claim)
        body = write_allocation(self._view.version, claim, write.allocation, write.pod)
        await self._patch(RESOURCE_CLAIM.name, claim, body, "status")
        log.info("claim.allocated", claim=claim.key)

    async def _protect(self, claim: ClassicClaim) -> ClassicClaim:
        finalizer = finalizer_of(claim.controller)
        if finalizer in claim.finalizers:
            return claim
        finalizers = [*claim.finalizers, finalizer]
        body = {"metadata": {"finalizers": finalizers}}
        await self._patch(RESOURCE_CLAIM.name, claim, body)
        return self._view.claim(claim.key) or claim

    async def _free(self, claim: ClassicClaim) -> bool:
        """Deallocate a claim that nobody uses; False: there is nothing to do."""
        step = plan_claim(claim)
        if step.deallocates:
            body = write_deallocation(self._view.version)
            await self._patch(RESOURCE_CLAIM.name, claim, body, "status")
            log.info("claim.deallocated", claim=claim.key)
        elif step.unprotects:
            body = {"metadata": {"finalizers": list(step.finalizers)}}
            await self._patch(RESOURCE_CLAIM.name, claim, body)
        return step.deallocates or step.unprotects

    async def _answer(self, answer: Answer) -> None:
        context = answer.context
        body = write_unsuitable(context, answer.unsuitable)
        raw = await self._api.patch(
            self._kinds[CONTEXT.name],
            context.key,
            body,
            subresource="status",
            uid=context.uid,
            resource_version=context.resource_version,
        )
        if answer.is_decided:
            self._answered[answer.pod_uid] = context.asked
        else:
            self._answered.pop(answer.pod_uid, None)
        change = Change(CONTEXT.name, context.key, raw)
        await self._take_change(change, synced=False)

    async def _patch(
        self, kind: str, claim: ClassicClaim, body: Json, subresource: str = ""
    ) -> None:
        """Write to a claim as it is known, and take in the answer."""
        raw = await self._api.patch(
            self._kinds[kind],
            claim.key,
            body,
            subresource=subresource,
            uid=claim.uid,
            resource_version=claim.resource_version,
        )
        await self._take_change(Change(kind, claim.key, raw), synced=False)


def _note(told: Told) -> Note:
    namespace, _, name = told.key.partition("/")
    version = "v1" if told.kind == "Pod" else RESOURCE_CLAIM.api_version
    subject = Subject(
        api_version=version,
        kind=told.kind,
        namespace=namespace,
        name=name,
        uid=told.uid,
    )
    return Note(
        regarding=subject,
        type="Warning",
        reason=told.reason,
        message=told.message[:MAX_REASON],
    )
