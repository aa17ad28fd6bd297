"""Answers PodSchedulingContexts and allocates classic claims, by decisions on the bus.

Follows while the service runs, writes while it leads. A conflict is left to the watch:
what has changed is planned anew. [io]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from functools import partial
from time import monotonic

from contracts.ids import ClusterName
from contracts.messages import (
    MAX_REASON,
    AllocationRefused,
    ClaimsReleased,
    GatesOpened,
)
from publisher.classic.known import ClassicView
from publisher.classic.look import Look, claim_of, look_at
from publisher.classic.objects import (
    CONTEXT,
    ClassicClaim,
    finalizer_of,
    write_allocation,
    write_deallocation,
    write_unsuitable,
)
from publisher.classic.plan_claim import plan_claim
from publisher.classic.plan_gang import (
    ClassicSteps,
    ContextAnswer,
    Told,
    Write,
    plan_gang,
)
from publisher.cluster.event_writer import EventWriter
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.state_publisher import StatePublisher
from publisher.errors import NotLeadingError
from publisher.gangs.notes import Note, Subject
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, group_of_claim
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
_SELECT_S = 60.0
"""How long kube-scheduler may take to select the node that is left to a pod."""
_RULED_OUT_S = 300.0
"""How long a node is not asked for that it did not select."""
_SETTLE_S = 3.0
"""What lasts less is not told: pods of a gang come one after the other."""
_STEPS = 20
"""ClassicSteps of one gang before others have their turn."""

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
        self._left_at_s: dict[str, float] = {}
        """By uid of a pod: when a node was left to it."""
        self._ruled_out: dict[tuple[str, str], float] = {}
        """By uid of a pod and node: when it may be asked for again."""
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
                claims = map(group_of_claim, self._view.claims())
                there = {*self._view.groups(), *claims}
                self._forget(there)
                await self._queue.add(sorted({*there, *self._gangs.groups()}))
                await first_of(lost, within_s=_LOOK_S)
        finally:
            self._leads.clear()

    def _forget(self, there: Container[GroupKey]) -> None:
        """Drop gangs that are over and of which nothing is left, and what is past."""
        now_s = monotonic()
        old = [key for key, until_s in self._ruled_out.items() if until_s <= now_s]
        for key in old:
            del self._ruled_out[key]
        for uid in self._answered.keys() - self._view.uids():
            self._forget_pod(uid)
        for group in tuple(self._gangs.finished_groups()):
            if group not in there:
                records = self._gangs.of_group(group)
                finished = [record.uid for record in records if record.is_finished]
                self._gangs.forget(group.namespace, finished)

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
        claim = claim_of(self._view, group)
        if claim is not None and await self._free(claim):
            return True
        steps = plan_gang(self._look_at(group))
        waits_s = await self._events.write_due([_note(told) for told in steps.told])
        if waits_s:
            self._queue.add_in(group, min(waits_s))
        if not steps.is_nothing:
            await self._carry_out(group, steps)
        return not steps.is_nothing

    def _look_at(self, group: GroupKey) -> Look:
        now_s = monotonic()
        left = self._left_at_s.items()
        out: dict[str, frozenset[str]] = {}
        for (uid, node), until_s in self._ruled_out.items():
            if until_s > now_s:
                out[uid] = out.get(uid, frozenset()) | {node}
        return look_at(
            self._view,
            group,
            self._gangs.of_group(group),
            cluster=self._cluster,
            now=self._now(),
            answered=self._answered,
            overdue=frozenset(u for u, at_s in left if now_s - at_s > _SELECT_S),
            ruled_out=out,
            forgotten=partial(self._gangs.forgotten, group.namespace),
        )

    # --- what is done -----------------------------------------------------------------

    async def _carry_out(self, group: GroupKey, steps: ClassicSteps) -> None:
        records = self._gangs.of_group(group)
        for write in steps.writes:
            try:
                await self._allocate(write)
            except InvalidError as error:
                await self._refuse(write, records, str(error))
                return
        for answer in steps.answers:
            await self._answer(answer)
        for uid, node in steps.rules_out:
            self._forget_pod(uid)
            self._ruled_out[uid, node] = monotonic() + _RULED_OUT_S
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
        if write.pod is not None:
            self._forget_pod(write.pod.uid)
        claim = await self._protect(write.claim)
        if not claim.is_wanting:
            return
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

    async def _answer(self, answer: ContextAnswer) -> None:
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
        self._forget_pod(answer.pod_uid)
        if answer.is_decided:
            self._answered[answer.pod_uid] = context.asked
            self._left_at_s[answer.pod_uid] = monotonic()
        change = Change(CONTEXT.name, context.key, raw)
        await self._take_change(change, synced=False)

    def _forget_pod(self, uid: str) -> None:
        """Forget which node was left to a pod."""
        self._answered.pop(uid, None)
        self._left_at_s.pop(uid, None)

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
        after_s=_SETTLE_S,
    )
