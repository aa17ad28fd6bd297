"""Whom a gang that has waited for long makes go: the cheapest of those that may.

One plan at a time: all its victims go or none, and what becomes free is kept for whom
they went. A plan is known from the decisions of its victims (`Preemption`), so another
leader goes on with it. Whoever was in vain made to go is left alone for a while. Pure.

Source: docs/queues-and-time.md, "Preemption".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from contracts.ids import GangKey
from contracts.lifecycle import GangRecord, is_preemption
from contracts.messages import GangAllocated, Preemption
from contracts.times import read_time, write_time
from solver.problem.assemble import resolve_gangs
from solver.queueing.gang_queue import urgency_of
from solver.queueing.turns import LineName
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import Asking
from solver.timeline.book import is_before, keep_clear, list_in_the_way
from solver.timeline.candidates import Candidate
from solver.timeline.futures import list_objects
from solver.timeline.keeper import Outlook, is_tried
from solver.timeline.patience import NEVER, line_of, read_terms
from solver.timeline.policies import is_allowed, list_allowed
from solver.timeline.reserve import Reservation, Scene, reserve
from solver.timeline.runs import Seconds
from solver.timeline.timetable import Timetable
from solver.timeline.victims import Victims, find_victims

LIMIT_S = 120
"""Whose pods were not evicted after so long stays."""
REST_S = 600
"""Nobody is made to go again so soon for a gang for which that was in vain."""
AGAIN_S = 60
"""Nobody is looked for again so soon for a gang for which nobody was found."""


class PreemptionPlan(Struct, frozen=True, kw_only=True):
    """Who is made to go for a gang, and what is kept for it."""

    found: Victims
    reservation: Reservation
    until_s: Seconds

    @property
    def victims(self) -> tuple[Candidate, ...]:
        """Those that must go: all of them, or none."""
        return self.found.victims

    def mark(self, snapshot: Snapshot) -> tuple[GangAllocated, ...]:
        """Make the decisions by which the victims go; empty: it does not hold now."""
        marked, now_s = list[GangAllocated](), self.until_s - LIMIT_S
        waits = snapshot.waiting.get(self.reservation.key)
        for victim in self.victims:
            record = snapshot.placed.get(victim.record.key)
            if waits is None or record is None or record.preempted_at(now_s):
                return ()
            is_same = record.attempt == victim.record.attempt
            if not is_same or not is_allowed(snapshot, record, waits):
                return ()
            marked += _repeat(record, self._say(record))
        return tuple(marked)

    def _say(self, record: GangRecord) -> Preemption:
        return Preemption(
            preemptor=self.reservation.key,
            name=self.reservation.record.name,
            until=write_time(self.until_s),
            since=write_time(int(record.placed_since_s)),
            victims=tuple(sorted(each.record.key for each in self.victims)),
        )


def believe(snapshot: Snapshot, decisions: Iterable[GangAllocated]) -> Snapshot:
    """Return the cluster as it is once these decisions were published."""
    for message in decisions:
        record = snapshot.gangs.get(message.key)
        sequence = 0 if record is None else record.decision_sequence
        snapshot = apply(snapshot, message, sequence=sequence)
    return snapshot


class Preempting:
    """Who is made to go for whom, from one look to the next."""

    def __init__(self) -> None:
        self.plans: tuple[PreemptionPlan, ...] = ()
        """Those that were not published yet."""
        self._again_s: dict[GangKey, Seconds] = {}
        """Until when nobody is looked for."""

    def see(self, snapshot: Snapshot) -> Snapshot:
        """Return the cluster with what was planned as if it were published.

        Plans of which a part is gone, or that were published, are dropped.
        """
        held = [(plan, plan.mark(snapshot)) for plan in self.plans]
        self.plans = tuple(plan for plan, marked in held if marked)
        return believe(snapshot, (each for _, marked in held for each in marked))

    def look(
        self, look: Outlook, kept: Sequence[Reservation]
    ) -> Asking[PreemptionPlan | None]:
        """Look for gangs that must go for the first that has waited for long enough.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        waiting, now_s = look.snapshot.waiting, look.now_s
        # If what is kept has moved, others end in time: nobody needs to go.
        starts = {each.key: each.start_s for each in kept}
        self.plans = tuple(
            plan
            for plan in self.plans
            if starts.get(plan.reservation.key) == plan.until_s
        )
        self._again_s = {
            gang: until_s
            for gang, until_s in self._again_s.items()
            if gang in waiting and until_s > now_s
        }
        for record in self._list_due(look, kept):
            plan = yield from make_plan(look, kept, record)
            if plan is not None:
                self.plans += (plan,)
                return plan
            self._again_s[record.key] = now_s + AGAIN_S
        return None

    def _list_due(self, look: Outlook, kept: Sequence[Reservation]) -> list[GangRecord]:
        """List who has waited for long enough, of each queue the first in order."""
        if not _may_anybody(look.snapshot):
            return []
        soon_s = look.now_s + LIMIT_S
        aside = {e.key for e in kept if e.start_s is not None and e.start_s <= soon_s}
        aside |= self._again_s.keys() | set(_list_resting(look))
        first: dict[LineName, GangRecord] = {}
        for record in look.snapshot.waiting.values():
            if record.key in aside or not is_tried(record):
                continue
            line = line_of(look.snapshot, record)
            terms = read_terms(look.snapshot, line[0], look.patience_s)
            delay_s, before = terms.preemption_delay_s, first.get(line)
            is_due = record.waits_since_s + delay_s <= look.now_s
            if delay_s == NEVER or not is_due:
                continue
            if before is None or urgency_of(record) < urgency_of(before):
                first[line] = record
        return sorted(first.values(), key=urgency_of)


def make_plan(
    look: Outlook, kept: Sequence[Reservation], record: GangRecord
) -> Asking[PreemptionPlan | None]:
    """Find who must go for a gang, and what is kept for it then; None: nobody.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    asker, now_s = look.asker_of(record), look.now_s
    if asker is None:
        return None
    before = [each for each in kept if is_before(each, record)]
    aside = list_in_the_way(record, before, now_s)
    state = keep_clear(look.snapshot, aside)
    (part,) = resolve_gangs(state, [record], asker.parameters.features)
    candidates = list_allowed(state, record, part, now_s)
    if not candidates:
        return None
    found = yield from find_victims(state, record, asker, candidates, now_s)
    if not found.victims:
        return None
    until_s = now_s + LIMIT_S
    draft = PreemptionPlan(
        found=found,
        reservation=Reservation(
            record=record, start_s=until_s, until_s=None, members=(), proven=False
        ),
        until_s=until_s,
    )
    marked = believe(look.snapshot, draft.mark(look.snapshot))
    scene = Scene(table=Timetable(marked, now_s), kept=before)
    made = yield from reserve(asker, scene, record)
    # If others end before that, nobody needs to go.
    if made is None or made.start_s != until_s:
        return None
    return structs.replace(draft, reservation=made)


def list_void(snapshot: Snapshot, now_s: Seconds) -> Iterator[GangAllocated]:
    """Go through decisions by which gangs may stay that were to go.

    The other one does not wait any more, or its queue lets it take nobody's place now.
    """
    for record in snapshot.placed.values():
        said = record.preempted_at(now_s)
        if said is None:
            continue
        waits = snapshot.waiting.get(said.preemptor)
        if waits is None or not is_allowed(snapshot, record, waits):
            yield from _repeat(record, structs.replace(said, until=write_time(now_s)))


def _repeat(record: GangRecord, said: Preemption) -> Iterator[GangAllocated]:
    """Repeat the decision of a gang, with that it must go, or may stay.

    As it was made: of one whose growth was refused the refusal still holds.
    """
    if isinstance(record.decision, GangAllocated):
        yield structs.replace(record.decision, preempted=said)


def is_leaving(snapshot: Snapshot, record: GangRecord) -> bool:
    """True if a gang ends for another, and its pods or their claims are still there.

    Until then it has its place, which is known to become free: whoever waits for it has
    it kept. A claim that it only named may be another's as well.
    """
    placed, command = record.placed, record.command
    if placed is None or command is None or not is_preemption(command):
        return False
    named = () if record.submission is None else record.submission.gang.named_claims
    return any(
        kind == "Pod" or (key not in named and _is_allocated(snapshot, key))
        for kind, key in list_objects(snapshot, record, placed)
    )


def _is_allocated(snapshot: Snapshot, key: str) -> bool:
    claim = snapshot.claims.get(key)
    return claim is not None and claim.allocation is not None


def _list_resting(look: Outlook) -> Iterator[GangKey]:
    """Go through gangs for which others were to go in vain."""
    for record in look.snapshot.placed.values():
        in_force = record.in_force
        said = None if in_force is None else in_force.preempted
        if said is not None and read_time(said.until) + REST_S > look.now_s:
            yield said.preemptor


def _may_anybody(snapshot: Snapshot) -> bool:
    """True if the gangs of some queue may make others go."""
    queues = snapshot.queues.cluster_queues
    return any(
        read_terms(snapshot, name, NEVER).preemption_delay_s != NEVER
        for name in sorted(queues)
    )
