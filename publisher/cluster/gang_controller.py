"""Carries out what comes next for each gang: one group of pods at a time.

Plans, writes side by side, applies the answers at once and plans again, until nothing
is left to do. A conflict means that the object is read again and planned anew, never
that a write is repeated blindly. What the API server refuses for good is undone and
decided again. Works only while this publisher leads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from contracts.avoidance import GRACE_S
from contracts.gang import GangPhase
from contracts.ids import ClusterName
from contracts.messages import MAX_REASON, CancelGang, GatesOpened, Preemption
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.cluster.bindings import Bindings
from publisher.cluster.budgets import Budgets
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.observer import Observer
from publisher.cluster.patch_writer import PatchWriter
from publisher.cluster.report_publisher import ReportPublisher
from publisher.cluster.state_publisher import StatePublisher
from publisher.cluster.status_writer import StatusWriter
from publisher.errors import NotLeadingError
from publisher.gangs.claims import Owns
from publisher.gangs.context import (
    EndForAnother,
    NextSteps,
    PlanContext,
    PublisherMessage,
    StatusReport,
)
from publisher.gangs.patches import Patch
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.running.preemption import describe_preemption, goes_for, runs_for
from publisher.gangs.status import NOT_STORED
from publisher.gangs.view import GroupKey
from publisher.pauses import Pause, Pauses
from runtime.errors import BusError, BusFullError
from runtime.kube.errors import ApiError
from runtime.log import get_logger
from runtime.metrics import observe_gang
from runtime.refusals import Refusals
from runtime.waits import first_of

_ROUNDS = 64
"""Of one group before others get their turn."""
_PAUSE_S = 1.0
_FORGET_S = 60.0
_WEIGHED_S = 2.0
"""How often it is looked whether disruption budgets let a gang go."""
_LOOK_S = 0.002
"""A look at a group that takes longer is not repeated at once: hundreds of pods change
one by one, and each change would have all of them looked at."""
_RESTS = 10
"""The rest is so many times as long as the look."""
_FAILED = Pause(free=0, first_s=1.0, most_s=60.0, forgotten_s=600.0)
"""For a group that cannot be handled."""
_MAKE_ROOM = (
    "; nothing is lost, and it is retried: NATS needs more room (docs/troubleshoot.md)"
)
_CHECKED = 5
"""So many pods of a gang that lost devices are read anew before that is acted upon."""

log = get_logger(__name__)


class _Writes(NamedTuple):
    """What is done next for a group: writes, or else messages."""

    patches: Sequence[Patch]
    removals: Sequence[Pod]
    evictions: Sequence[Pod]
    messages: Sequence[PublisherMessage]

    @property
    def writes(self) -> bool:
        """True if anything is written."""
        return bool(self.patches or self.removals or self.evictions)


class GangController:
    """Plans and carries out, for the groups that its workers take from the queue."""

    def __init__(
        self,
        cluster: ClusterName,
        leads: asyncio.Event,
        *,
        queue: GroupQueue,
        observer: Observer,
        gangs: GangBus,
        state: StatePublisher,
        patches: PatchWriter,
        budgets: Budgets,
        statuses: StatusWriter,
        reports: ReportPublisher,
        owns: Owns,
        now: Callable[[], str],
        grace_s: float = GRACE_S,
        allocates_bound: bool = False,
    ) -> None:
        """`leads` is set here, for all who hold it, while this publisher leads.

        What kube-scheduler refuses for less than `grace_s` may pass by itself. With
        `allocates_bound` pods that were bound without us get devices of their nodes.
        """
        self._cluster = cluster
        self._leads = leads
        self._queue = queue
        self._observer = observer
        self._gangs = gangs
        self._state = state
        self._patches = patches
        self._budgets = budgets
        self._statuses = statuses
        self._reports = reports
        self._owns = owns
        self._now = now
        self._grace_s = grace_s
        self._allocates_bound = allocates_bound
        self._refusals = Refusals()
        self._failed: Pauses[GroupKey] = Pauses(_FAILED)
        self._bindings = Bindings()
        self._refused_groups: set[GroupKey] = set()
        """Groups that wait for writes that the API server does not take."""
        self._rounds = 0
        self._idle = asyncio.Event()
        self._idle.set()
        """No group is being worked on."""

    async def lead(self, lost: asyncio.Event) -> None:
        """Let the workers write until `lost` is set, beginning with every group.

        Returns only when nothing of ours is on its way any more.
        """
        self._leads.set()
        self._patches.forget_refusals()
        view = self._observer.view
        groups = {*view.groups(), *view.strays.groups(), *self._gangs.groups()}
        await self._queue.add(groups)
        await lost.wait()
        self._leads.clear()
        self._patches.forget_refusals()
        await self._idle.wait()
        self._statuses.fall_silent()

    # --- one group at a time ---------------------------------------------------------

    async def work(self, stop: asyncio.Event) -> None:
        """Work on one group after the other, until the queue is closed."""
        while (group := await self._queue.take()) is not None:
            again = False
            with self._refusals.guard(_name_of(group)) as guarded:
                again = await self._try_group(group)
            if guarded.refused is None:
                self._failed.forget(group)
            else:
                self._put_aside(group, guarded.refused.reason)
            await self._queue.done(group, again=again)
        await stop.wait()

    async def _try_group(self, group: GroupKey) -> bool:
        """Work on a group if we lead; True: look at it again at once."""
        try:
            return self._leads.is_set() and not await self._run_round(group)
        except (ApiError, NotLeadingError) as error:
            self._delay_group(group, error, error.retry_after_s)
        except BusError as error:
            self._delay_group(group, error)
            message = str(error)
            if isinstance(error, BusFullError):
                message = f"{message[: MAX_REASON - len(_MAKE_ROOM)]}{_MAKE_ROOM}"
            self._report_waiting(group, NOT_STORED, message)
        return False

    def _put_aside(self, group: GroupKey, reason: str) -> None:
        """Let a group rest that cannot be handled, ever longer, and tell its pods.

        One author's mistake neither ends the service nor keeps it busy.
        """
        self._queue.rest(group, self._failed.next_s(group, time.monotonic()))
        with self._refusals.guard(_name_of(group)):
            message = f"the publisher cannot handle these pods: {reason}"
            self._report_waiting(group, "NotHandled", message)

    def _delay_group(
        self, group: GroupKey, error: Exception, pause_s: float | None = None
    ) -> None:
        log.warning("gang.delayed", gang=str(group), reason=str(error))
        self._queue.rest(group, pause_s or _PAUSE_S)

    async def _run_round(self, group: GroupKey) -> bool:
        """Work on a group, counted, so that `lead` can wait for it."""
        self._rounds += 1
        self._idle.clear()
        try:
            return await self._advance_group(group)
        finally:
            self._rounds -= 1
            if not self._rounds:
                self._idle.set()

    async def _advance_group(self, group: GroupKey) -> bool:
        """Do what can be done now; False: there is more to do.

        Raises:
            ApiError: the API server does not answer, or a permission is missing.
            BusError: something could not be said.
            NotLeadingError: another publisher goes on.
        """
        checked: set[tuple[str, str]] = set()
        last_step: object = None
        for _ in range(_ROUNDS):
            if not self._leads.is_set():
                return True
            unreadable = self._observer.find_unreadable(group)
            if unreadable:
                self._report_waiting(group, "ObjectUnreadable", unreadable)
                return True
            # First plan, from what is known by now.
            began_s = time.thread_time()
            situation = self._situation_of(group)
            self._look_bound(situation)
            plan = plan_gang(situation)
            took_s = time.thread_time() - began_s
            self._gangs.forget(group.namespace, plan.forget)
            if plan.look_again_s is not None:
                self._queue.add_in(group, plan.look_again_s)
            if not await self._patches.check(plan.doubted[:_CHECKED], checked):
                continue
            # Then leave out what the API server refused, and see what remains.
            patches = [p for p in plan.patches if not self._patches.refusal_of(p)]
            removals = [
                p for p in plan.removals if not self._patches.removal_refusal_of(p)
            ]
            evictions = [
                p for p in plan.evictions if not self._patches.removal_refusal_of(p)
            ]
            messages = () if plan.patches else plan.messages
            step = _Writes(patches, removals, evictions, messages)
            if plan.preemptions and not plan.patches and not step.writes:
                ends, weighed = await self._weigh_all(plan.preemptions)
                step = step._replace(messages=(*messages, *ends))
                plan = replace(plan, reports=(*plan.reports, *weighed))
            if step == last_step or not any(step):
                refusals = self._report_refusals(situation, plan)
                self._report_status(group, [*plan.reports, *refusals])
                if any(step):
                    # Neither doing nor looking again has changed anything.
                    self._queue.rest(group, _PAUSE_S)
                elif plan.preemptions:
                    self._queue.rest(group, _WEIGHED_S)
                elif took_s > _LOOK_S:
                    self._queue.rest(group, _RESTS * took_s, again=False)
                return True
            # Then do it, and look again: the answers are in the View by then.
            last_step = step
            await self._take_step(situation, plan.reports, step)
            self._report_status(group, plan.reports)
        return False

    def _look_bound(self, situation: PlanContext) -> None:
        pods = situation.pods
        bound = self._bindings.look(situation.group, pods, time.monotonic())
        if bound is not None:
            observe_gang("bound", *bound)

    async def _take_step(
        self,
        situation: PlanContext,
        reports: Sequence[StatusReport],
        step: _Writes,
    ) -> None:
        """Carry out writes; without any, publish messages."""
        if step.writes:
            await self._patches.write(step.patches)
            if step.removals or step.evictions:
                # Once its pods are gone there is nobody left to tell why.
                await self._statuses.report_now(situation.group, reports)
                await self._patches.remove(step.removals)
                await self._patches.evict(step.evictions)
            return
        for message in step.messages:
            await self._publish_message(situation, message)

    async def _weigh_all(
        self, ends: Sequence[EndForAnother]
    ) -> tuple[list[CancelGang], list[StatusReport]]:
        """Return which gangs end for others now, and what all of them report.

        Raises:
            ApiError: the disruption budgets cannot be read.
        """
        messages, reports = list[CancelGang](), list[StatusReport]()
        for end in ends:
            refusal = await self._weigh_preemption(end.said)
            if not refusal:
                messages.append(end.message)
                reports.append(end.report)
                continue
            text = f"{describe_preemption(end.said)}: {refusal}"[:MAX_REASON]
            reports.append(
                replace(end.report, reason="PreemptionRefused", message=text)
            )
        return messages, reports

    async def _weigh_preemption(self, said: Preemption) -> str:
        """Say why gangs do not go for another; empty: nothing is against it."""
        waits = self._gangs.find(said.preemptor)
        if waits is None or not waits.wants_decision:
            return "it does not wait for devices"
        records = [
            self._gangs.find(gang)
            for gang in said.victims
            # Of those that went before nothing may be left.
            if self._gangs.forgotten(gang.namespace, gang.uid) is None
        ]
        if not all(record is not None and goes_for(record, said) for record in records):
            return "others that must go with it do not know yet"
        going = {gang.uid for gang in said.victims}
        groups = {r.group for r in records if r is not None and r.group is not None}
        there = (pod for group in groups for pod in self._observer.view.pods(group))
        return await self._budgets.find_refusal(
            pod for pod in there if runs_for(pod, going)
        )

    async def forget(self, stop: asyncio.Event) -> None:
        """Drop what is over while another publisher leads; it does so by itself.

        The leader tries refused writes again: admission may have changed its mind.
        """
        while not stop.is_set():
            groups, self._refused_groups = self._refused_groups, set()
            if groups:
                self._patches.retry_refused()
                await self._queue.add(groups)
            # Only what is finished can be forgotten; of what runs there are thousands.
            for group in tuple(self._gangs.finished_groups()):
                if not self._leads.is_set():
                    with self._refusals.guard(_name_of(group)):
                        plan = plan_gang(self._situation_of(group))
                        self._gangs.forget(group.namespace, plan.forget)
                # Others get their turn in between.
                await asyncio.sleep(0)
            await first_of(stop, within_s=_FORGET_S)

    def _situation_of(self, group: GroupKey) -> PlanContext:
        return PlanContext(
            cluster=self._cluster,
            group=group,
            view=self._observer.view,
            records=self._gangs.of_group(group),
            owns=self._owns,
            now=self._now(),
            refused=partial(self._patches.attempt_refusal_of, group.namespace),
            forgotten=partial(self._gangs.forgotten, group.namespace),
            refused_since=self._observer.refusals.since,
            grace_s=self._grace_s,
            allocates_bound=self._allocates_bound,
            avoided=partial(self._gangs.avoided, group.namespace),
        )

    # --- what is reported and said ---------------------------------------------------

    def _report_status(self, group: GroupKey, reports: Sequence[StatusReport]) -> None:
        """Report to people, in the cluster and on the bus."""
        self._statuses.report(group, reports)
        self._reports.report(group, reports)

    def _report_waiting(self, group: GroupKey, reason: str, message: str) -> None:
        """Report to pods that wait why nothing is done for them."""
        report = StatusReport(
            phase=WAITING,
            reason=reason,
            message=message[:MAX_REASON],
            pods=self._situation_of(group).waiting,
        )
        self._report_status(group, [report])

    def _report_refusals(
        self, situation: PlanContext, plan: NextSteps
    ) -> list[StatusReport]:
        """Report writes and deletions that the API server refuses."""
        reasons = filter(None, map(self._patches.refusal_of, plan.patches))
        refusals = [(WAITING, reason, situation.waiting) for reason in reasons][:1]
        kept = [
            (reason, pod)
            for pod in (*plan.removals, *plan.evictions)
            if (reason := self._patches.removal_refusal_of(pod))
        ]
        if kept:
            pods = tuple(pod for _, pod in kept)
            refusals.append((GangPhase.RUNNING, kept[0][0], pods))
        if refusals:
            self._refused_groups.add(situation.group)
        return [
            StatusReport(phase=phase, reason="WriteRefused", message=reason, pods=pods)
            for phase, reason, pods in refusals
        ]

    async def _publish_message(
        self, situation: PlanContext, message: PublisherMessage
    ) -> None:
        if isinstance(message, GatesOpened):
            # The bus holds the gang's claims and pods as we wrote them.
            message = replace(message, state=await self._state.wait_published())
        await self._gangs.say(message, situation.records)
        if isinstance(message, GatesOpened):
            record = self._gangs.find(message.key)
            submission = None if record is None else record.submission
            priority = 0 if submission is None else submission.gang.spec.priority
            group, now_s = situation.group, time.monotonic()
            self._bindings.note_opened(group, priority, now_s)
        log.info(
            "gang.told",
            message=type(message).__name__,
            gang=str(situation.group),
            about="/".join(message.address[1:]),
        )


def _name_of(group: GroupKey) -> str:
    """Name a group in the log, beside subjects of messages and kinds of objects."""
    return f"gang/{group}"
