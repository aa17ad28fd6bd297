"""Carries out what comes next for each gang: one group of pods at a time.

Plans, writes side by side, believes the answers at once and plans again, until nothing
is left to do. A conflict means that the object is read again and planned anew, never
that a write is repeated blindly. What the API server refuses for good is undone and
decided again. Works only while this publisher leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from contracts.errors import ContractsError
from contracts.ids import ClusterName
from contracts.messages import GatesOpened
from publisher.cluster.gang_bus import GangBus
from publisher.cluster.observer import Observer
from publisher.cluster.patch_writer import PatchWriter
from publisher.cluster.state_publisher import StatePublisher
from publisher.cluster.status_writer import StatusWriter
from publisher.errors import (
    ApiError,
    NotLeadingError,
)
from publisher.gangs.members import Owns
from publisher.gangs.patches import Patch
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.situation import (
    WAITING,
    GangMessage,
    GangPlan,
    Situation,
    StatusReport,
)
from publisher.gangs.view import GroupKey, is_gated, is_over
from publisher.kube.api import KubernetesApi
from publisher.latest_queue import LatestQueue
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.run import Task
from runtime.waits import first_of

_ROUNDS = 64
"""Of one group before others get their turn."""
_PAUSE_S = 1.0
_FORGET_S = 60.0
_CHECKED = 5
"""So many pods of a gang that lost devices are read anew before it is believed."""
_SHOWN = 500

log = get_logger(__name__)


class GangController:
    """Groups of pods that something happened to, and who works on them."""

    def __init__(
        self,
        cluster: ClusterName,
        *,
        api: KubernetesApi,
        observed: Observer,
        gangs: GangBus,
        state: StatePublisher,
        teller: StatusWriter,
        owns: Owns,
        now: Callable[[], str],
    ) -> None:
        self._cluster = cluster
        self._observed = observed
        self._gangs = gangs
        self._state = state
        self._teller = teller
        self._owns = owns
        self._now = now
        self._queue: LatestQueue[GroupKey, None] = LatestQueue()
        self._writes = PatchWriter(api, observed, state, lambda: self._leads)
        self._refused_groups: set[GroupKey] = set()
        """Who waits for writes that the API server does not take."""
        self._resting: dict[GroupKey, asyncio.Task[None]] = {}
        """Groups that are left alone for a while."""
        self._closed = asyncio.Event()
        self._rounds = 0
        self._idle = asyncio.Event()
        self._idle.set()
        """No group is being worked on."""
        self._leads = False

    def tasks(self, workers: int) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {f"gangs-{index}": self._work for index in range(workers)}

    async def changed(self, groups: Iterable[GroupKey]) -> None:
        """Look at these groups, soon."""
        if self._leads:
            for group in groups:
                if group not in self._resting:
                    await self._queue.put(group, None)

    async def lead(self, *, leads: bool) -> None:
        """Begin or cease to write; who begins looks at everything.

        Returns only when nothing of ours is on its way any more.
        """
        self._leads = leads
        self._writes.forget_all()
        if not leads:
            await self._idle.wait()
            self._teller.fall_silent()
        await self.changed({*self._observed.view.groups(), *self._gangs.groups()})

    async def close(self) -> None:
        """Let the workers end."""
        self._closed.set()
        await self._queue.close()

    # --- one group at a time ---------------------------------------------------------

    async def _work(self, stop: asyncio.Event) -> None:
        while (item := await self._queue.take()) is not None:
            group, _ = item
            if group in self._resting:
                await self._queue.done(group)
                continue
            again = False
            try:
                again = self._leads and not await self._round(group)
            except (ApiError, BusError, NotLeadingError) as error:
                log.warning("gang.delayed", gang=str(group), reason=str(error))
                self._rest(group, getattr(error, "retry_after_s", None) or _PAUSE_S)
            except (ContractsError, ValueError) as error:
                # What one author wrote must not end the service for everybody.
                log.error("gang.refused", gang=str(group), reason=str(error)[:_SHOWN])  # noqa: TRY400 # the reason is the whole story
            await self._queue.done(group)
            if again:
                await self.changed((group,))
        await stop.wait()

    async def _round(self, group: GroupKey) -> bool:
        """Work on a group, counted, so that who stops leading can wait for it."""
        self._rounds += 1
        self._idle.clear()
        try:
            return await self._settle(group)
        finally:
            self._rounds -= 1
            if not self._rounds:
                self._idle.set()

    def _rest(self, group: GroupKey, pause_s: float) -> None:
        """Leave a group alone for a while, and nobody else."""

        async def rest() -> None:
            await first_of(self._closed, within_s=pause_s)
            del self._resting[group]
            await self.changed((group,))

        self._resting[group] = asyncio.create_task(rest(), name=f"rest {group}")

    async def _settle(self, group: GroupKey) -> bool:
        """Do what can be done now; False: there is more to do.

        Raises:
            ApiError: the API server does not answer, or a permission is missing.
            BusError: something could not be said.
            NotLeadingError: another publisher goes on.
        """
        checked: set[tuple[str, str]] = set()
        before: object = None
        for _ in range(_ROUNDS):
            if not self._leads:
                return True
            situation = self._situation(group)
            plan = plan_gang(situation)
            self._gangs.forget(plan.forget)
            if not await self._writes.check(plan.doubted[:_CHECKED], checked):
                continue
            patches = [p for p in plan.patches if not self._writes.refusal(p)]
            step = (patches, plan.removals, [] if plan.patches else plan.messages)
            if step == before or not any(step):
                self._teller.tell(group, [*plan.told, *self._refusals(situation, plan)])
                if any(step):
                    # Neither doing nor looking again has changed anything.
                    self._rest(group, _PAUSE_S)
                return True
            before = step
            await self._take_step(situation, plan, patches, step[-1])
            self._teller.tell(group, plan.told)
        return False

    async def _take_step(
        self,
        situation: Situation,
        plan: GangPlan,
        patches: Sequence[Patch],
        messages: Sequence[GangMessage],
    ) -> None:
        """Do writes, or else say what is to be said."""
        if patches or plan.removals:
            await self._writes.write(patches)
            if plan.removals:
                await self._teller.tell_now(situation.group, plan.told)
                await self._writes.remove(plan.removals)
            return
        for message in messages:
            await self._say(situation, message)

    async def forget(self, stop: asyncio.Event) -> None:
        """Drop what is over while another publisher leads; it does so by itself.

        Who leads tries now what was refused: admission may have changed its mind.
        """
        while not stop.is_set():
            groups, self._refused_groups = self._refused_groups, set()
            if groups:
                self._writes.forget_refusals()
                await self.changed(groups)
            for group in tuple(self._gangs.groups()):
                if not self._leads:
                    self._gangs.forget(plan_gang(self._situation(group)).forget)
                await asyncio.sleep(0)
            await first_of(stop, within_s=_FORGET_S)

    def _situation(self, group: GroupKey) -> Situation:
        return Situation(
            cluster=self._cluster,
            group=group,
            view=self._observed.view,
            submissions=self._gangs.of_group(group),
            owns=self._owns,
            now=self._now(),
            refused=self._writes.attempt_refusal,
            forgotten=self._gangs.forgotten,
        )

    # --- what is told and said -----------------------------------------------------

    def _refusals(self, situation: Situation, plan: GangPlan) -> list[StatusReport]:
        """Tell those who wait for a write that is not taken."""
        reasons = list(filter(None, map(self._writes.refusal, plan.patches)))
        if reasons:
            self._refused_groups.add(situation.group)
        pods = situation.view.pods(situation.group)
        waiting = tuple(pod for pod in pods if is_gated(pod) and not is_over(pod))
        return [
            StatusReport(
                phase=WAITING, reason="WriteRefused", message=reason, pods=waiting
            )
            for reason in reasons[:1]
        ]

    async def _say(self, situation: Situation, message: GangMessage) -> None:
        if isinstance(message, GatesOpened):
            # The bus holds the gang's claims and pods as we wrote them.
            message = replace(message, state=await self._state.published())
        await self._gangs.say(message, situation.submissions)
        log.info(
            "gang.told",
            message=type(message).__name__,
            gang=str(situation.group),
            gang_uid=message.uid,
        )
