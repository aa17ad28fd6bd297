"""The earliest time at which a gang can start, given what runs and what is kept.

Between two reservations that begin or end, a cluster only gains: who ended stays away.
So of the ends in between the first that lets the gang in is found by halving, and few
are asked about. Pure; see `asking.py` for who answers.

Source: EASY backfill (Lifka, 1995), by states of all devices instead of counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from contracts.messages import QuotaHeld
from solver.problem.free_devices import FreeDevices
from solver.problem.quota.asked import count_held
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asker, Asking, read_fit
from solver.timeline.futures import Members, list_results, with_gang
from solver.timeline.runs import Run, Seconds
from solver.timeline.timetable import Timetable


class Reservation(Struct, frozen=True, kw_only=True):
    """What is kept for a gang that waits: a start, nodes and devices."""

    record: GangRecord
    start_s: Seconds | None
    """None: once gangs have ended of which nobody knows when."""
    until_s: Seconds | None
    """When it has ended at the latest; None: nobody knows."""
    members: Members
    quota: QuotaHeld | None = None
    """What is kept of its queue's quotas; None: no queue counts it."""
    proven: bool
    """True if it can start no earlier, by what is known."""
    since_s: Seconds = 0
    """Since when something is kept."""
    moved: str = ""
    """Why it was moved later, if it was."""
    problem: str = ""
    """Hash of the Problem that was answered with these places."""
    after: tuple[GangKey, ...] = ()
    """Gangs that hold some of it now; the last to end comes last."""

    @property
    def key(self) -> GangKey:
        """The gang that it is kept for."""
        return self.record.key

    def is_during(self, start_s: Seconds | None, until_s: Seconds | None) -> bool:
        """True if some of it is in use, or kept, in a time.

        `start_s`: None: after all ends that are known; `until_s`: None: for ever.
        """
        if self.start_s is None:
            # It comes after all ends that are known, and that of the other is.
            return until_s is None
        if start_s is None:
            return self.until_s is None
        begins = until_s is None or self.start_s < until_s
        return begins and (self.until_s is None or self.until_s > start_s)


class _Step(Struct, frozen=True):
    """A time at which something ends."""

    start_s: Seconds | None
    ended: int
    """How many of the runs have ended by then, in their order."""


class Scene(Struct, frozen=True, kw_only=True):
    """What is known of the time to come."""

    table: Timetable
    kept: Sequence[Reservation] = ()
    """What is kept for others."""


def reserve(
    asker: Asker, scene: Scene, record: GangRecord, *, before_s: Seconds | None = None
) -> Asking[Reservation | None]:
    """Find the earliest start of a gang that waits; None: it has none, ever.

    `before_s`: only a start before then is wanted.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    search, steps = _Search(asker, scene, record), _list_steps(scene)
    if before_s is not None:
        steps = [s for s in steps if s.start_s is not None and s.start_s < before_s]
    for _, group in groupby(steps, key=search.find_company):
        step = yield from search.find_first(list(group))
        if step is not None:
            return (yield from search.reserve_at(step))
    return None


class _Search:
    """What is asked about one gang."""

    def __init__(self, asker: Asker, scene: Scene, record: GangRecord) -> None:
        self._asker = asker
        self._record = record
        self._table = scene.table
        self._kept = scene.kept
        self._duration_s = record.duration_s
        self._proven = True
        (self._gang,) = asker.resolve(scene.table.snapshot, record)

    def find_company(self, step: _Step) -> tuple[int, ...]:
        """Name the reservations beside which it would run, by their numbers."""
        until_s = self._end_of(step.start_s)
        return tuple(
            number
            for number, each in enumerate(self._kept)
            if each.is_during(step.start_s, until_s)
        )

    def find_first(self, steps: list[_Step]) -> Asking[_Step | None]:
        """Find the first of some steps with one company at which the gang fits."""
        if not (yield from self._fits_at(steps[-1])):
            return None
        low, high = 0, len(steps) - 1
        while low < high:
            middle = (low + high) // 2
            if (yield from self._fits_at(steps[middle])):
                high = middle
            else:
                low = middle + 1
        return steps[low]

    def reserve_at(self, step: _Step) -> Asking[Reservation]:
        """Place the gang as it would be at a step at which it fits."""
        question = self._asker.question(self._state_at(step), self._record)
        fit = read_fit((yield question), self._record.key)
        (part,) = (gang for gang in question.gangs if gang.key == self._record.key)
        return Reservation(
            record=self._record,
            start_s=step.start_s,
            until_s=self._end_of(step.start_s),
            members=fit.members,
            quota=count_held(part, fit.members),
            proven=self._proven,
            since_s=self._table.now_s,
            problem=fit.problem,
            after=_list_holders(self._table.runs[: step.ended], fit.members),
        )

    def _fits_at(self, step: _Step) -> Asking[bool]:
        began = [
            each.members for each in self._list_company(step) if _is_by(each, step)
        ]
        free = self._table.list_free_beside(step.ended, began)
        if free is not None and FreeDevices.of(free).lacks(self._gang):
            return False
        fit = yield from self._asker.find(self._state_at(step), self._record)
        self._proven &= bool(fit) or fit.proven
        return bool(fit)

    def _state_at(self, step: _Step) -> Snapshot:
        """Return the cluster of a step, with all that is kept while the gang runs."""
        state = self._table.after(step.ended)
        for each in self._list_company(step):
            state = with_gang(state, each.record, each.members, quota=each.quota)
        return state

    def _list_company(self, step: _Step) -> list[Reservation]:
        return [self._kept[number] for number in self.find_company(step)]

    def _end_of(self, start_s: Seconds | None) -> Seconds | None:
        if start_s is None or self._duration_s is None:
            return None
        return start_s + self._duration_s


def _is_by(kept: Reservation, step: _Step) -> bool:
    """True if what is kept has begun by a step."""
    if kept.start_s is None or step.start_s is None:
        return False
    return kept.start_s <= step.start_s


def _list_steps(scene: Scene) -> list[_Step]:
    """List the times at which something ends, in their order, and now."""
    table = scene.table
    now_s, ends = table.now_s, table.ends
    kept_ends = [each.until_s for each in scene.kept if each.until_s is not None]
    times = sorted({now_s, *ends, *(end for end in kept_ends if end > now_s)})
    steps = [_Step(time_s, table.count_ended(time_s)) for time_s in times]
    unknown = range(len(ends) + 1, len(table.runs) + 1)
    return [*steps, *(_Step(None, ended) for ended in unknown)]


def _list_holders(runs: Sequence[Run], members: Members) -> tuple[GangKey, ...]:
    """List the gangs that hold a device, or run on a node, of some places."""
    nodes = {pod.node for pod in members}
    devices = {_name_device(result) for result in list_results(members)}
    return tuple(
        run.record.key
        for run in runs
        if run.record.placed is not None
        and (
            any(
                _name_device(result) in devices
                for result in list_results(run.record.placed.members)
            )
            if devices
            else any(pod.node in nodes for pod in run.record.placed.members)
        )
    )


def _name_device(result: DeviceRequestAllocationResult) -> tuple[str, str, str]:
    return (result.driver, result.pool, result.device)
