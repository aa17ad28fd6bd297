"""Keeps reservations: who gets one, whether it still holds, and when it must move.

One for the first gang in order of each queue that was tried in vain and has waited for
long, and few at a time. A start that was promised moves later only for a reason
that is told. Pure: time, Snapshot and answers come from outside.

Source: docs/queues-and-time.md, "Reservations".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest

from msgspec import Struct, structs

from contracts.allocation import Rule
from contracts.ids import GangKey
from contracts.lifecycle import GangRecord, is_answer
from contracts.times import read_time
from solver.decision import (
    Decision,
    GangDecision,
    Statistics,
    Status,
    TierValue,
)
from solver.judge.rules import judge
from solver.problem.problem import Problem
from solver.queueing.gang_queue import urgency_of
from solver.queueing.turns import LineName
from solver.snapshot.snapshot import Snapshot
from solver.tiers import Tier
from solver.timeline.asking import AskerOf, Asking
from solver.timeline.book import keep_clear
from solver.timeline.futures import Members, without_gangs
from solver.timeline.patience import (
    MOST_RESERVATIONS,
    NEVER,
    QueueTerms,
    line_of,
    read_terms,
)
from solver.timeline.reserve import Reservation, Scene, reserve
from solver.timeline.runs import Run, Seconds
from solver.timeline.timetable import Timetable

MOST_LATE_S = 60
"""A promise is so long past before it moves again for the same overrun."""
OF_QUEUES = frozenset({Rule.QUOTA, Rule.QUEUE_CLOSED})
"""Reasons of gangs that wait for quota: devices are no help."""


class Outlook(Struct, frozen=True, kw_only=True, dict=True):
    """What is known when reservations are looked at."""

    snapshot: Snapshot
    now_s: Seconds
    asker_of: AskerOf
    patience_s: int
    """How long a gang waits before it gets a reservation; `NEVER`: none does."""
    reservations: int = 1
    """How many a queue has at a time where it does not say so itself."""
    is_worse: bool = True
    """False: nothing was lost since the last look, nobody overran and nobody of a
    higher priority began; what is kept holds."""

    @cached_property
    def table(self) -> Timetable:
        """Who ends when, and the cluster in between."""
        return Timetable(self.snapshot, self.now_s)


class Book(Struct, frozen=True, kw_only=True):
    """All reservations, those that were made first at the front."""

    kept: tuple[Reservation, ...] = ()
    late: tuple[tuple[Reservation, str], ...] = ()
    """Those that moved later when this was made, as they were, and why."""
    unknown: frozenset[GangKey] = frozenset()
    """Those promised by others about which nothing can be asked yet."""
    beyond: Mapping[GangKey, frozenset[GangKey]] = {}
    """By reservation who stands in the way of an earlier start: gangs that still run
    when it begins, and all others for whom something is kept."""

    def find(self, record: GangRecord) -> Reservation | None:
        """Find what is kept for a gang."""
        return next((each for each in self.kept if each.key == record.key), None)


def keep_book(book: Book, look: Outlook) -> Asking[Book]:
    """Look at all reservations once more, and make those that are due.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    waiting = look.snapshot.waiting
    old = [each for each in book.kept if each.key in waiting]
    promised, unknown = _list_promised(look, old), set[GangKey]()
    candidates = list_candidates(look, [*old, *promised])
    if not old and not promised and not candidates:
        return Book()
    runs = look.table.runs
    kept, late = list[Reservation](), list[tuple[Reservation, str]]()
    for number, each in enumerate(old):
        after = old[number + 1 :]
        fault = _find_fault(each, look, [*kept, *after])
        if not fault:
            beyond = list_beyond(each, runs, [*kept, *after])
            if book.beyond.get(each.key, beyond) <= beyond:
                kept.append(each)
                continue
            others = [*kept, *after]
            kept.append((yield from _move_earlier(each, look, others)))
            continue
        moved = yield from _move(each, look, (kept, after))
        is_late = moved is None or _is_later(moved, each)
        if is_late:
            late.append((each, fault))
        if moved is not None:
            why = fault if is_late else each.moved
            kept.append(structs.replace(moved, since_s=each.since_s, moved=why))
    for each in promised:
        if look.asker_of(each.record) is None:
            unknown.add(each.key)
            continue
        made = yield from _reserve(each.record, look, kept)
        is_late = made is None or _is_later(made, each)
        why = "things changed before this solver led" if is_late else ""
        if is_late:
            late.append((each, why))
        if made is not None:
            kept.append(structs.replace(made, since_s=each.since_s, moved=why))
    for record in candidates:
        made = yield from _reserve(record, look, kept)
        if made is not None:
            kept.append(made)
    return Book(
        kept=tuple(kept),
        late=tuple(late),
        unknown=frozenset(unknown),
        beyond={each.key: list_beyond(each, runs, kept) for each in kept},
    )


def list_candidates(look: Outlook, kept: Iterable[Reservation]) -> list[GangRecord]:
    """List who gets a reservation next: the first of each queue that may have more.

    Gangs without a queue count as one queue a namespace, which has one at a time.
    """
    snapshot = look.snapshot
    taken = Counter(line_of(snapshot, each.record) for each in kept)
    room = MOST_RESERVATIONS - sum(taken.values())
    known, terms_of = {each.key for each in kept}, dict[LineName, QueueTerms]()
    due: dict[LineName, list[GangRecord]] = {}
    for record in snapshot.waiting.values():
        if not is_tried(record, OF_QUEUES) or record.key in known:
            continue
        line = line_of(snapshot, record)
        terms = terms_of.get(line) or read_terms(
            snapshot, line[0], look.patience_s, look.reservations
        )
        terms_of[line] = terms
        is_due = record.waits_since_s + terms.patience_s <= look.now_s
        if is_due and terms.patience_s != NEVER:
            due.setdefault(line, []).append(record)
    first = list[GangRecord]()
    for line, records in due.items():
        more = max(terms_of[line].reservations - taken[line], 0)
        first += nsmallest(more, records, key=urgency_of)
    return sorted(first, key=urgency_of)[: max(room, 0)]


def _list_promised(look: Outlook, kept: Iterable[Reservation]) -> list[Reservation]:
    """List what others have promised, without places; made first at the front."""
    known = {each.key for each in kept}
    promised = [
        Reservation(
            record=record,
            start_s=round(read_time(record.expected.time)) or None,
            until_s=None,
            members=(),
            proven=False,
            since_s=round(read_time(record.expected.since)),
        )
        for record in look.snapshot.promised.values()
        if record.expected is not None and record.key not in known
    ]
    return sorted(promised, key=lambda each: (each.since_s, urgency_of(each.record)))


def is_tried(record: GangRecord, aside: Collection[Rule] = ()) -> bool:
    """True if a gang was tried in vain, and waits for none of some reasons."""
    if record.decision is None or not is_answer(record.decision):
        return False
    return not {reason.rule for reason in record.reasons}.intersection(aside)


def _reserve(
    record: GangRecord, look: Outlook, kept: Sequence[Reservation]
) -> Asking[Reservation | None]:
    asker = look.asker_of(record)
    if asker is None:
        return None
    scene = Scene(table=look.table, kept=kept)
    return (yield from reserve(asker, scene, record))


def _move(
    old: Reservation,
    look: Outlook,
    others: tuple[Sequence[Reservation], Sequence[Reservation]],
) -> Asking[Reservation | None]:
    """Keep something else; if need be, what is kept for those that came after it."""
    before, after = others
    record = look.snapshot.waiting.get(old.key) or old.record
    beside = yield from _reserve(record, look, [*before, *after])
    if beside is not None and not _is_later(beside, old):
        return beside
    return (yield from _reserve(record, look, before)) if after else beside


def list_beyond(
    kept: Reservation, runs: Iterable[Run], others: Iterable[Reservation]
) -> frozenset[GangKey]:
    """List who stands in the way of an earlier start, whose end would make it possible.

    A gang that was to end before changes nothing by ending early: without it there was
    no place either.
    """
    start_s = kept.start_s
    still = (
        run.record.key
        for run in runs
        if run.ends_s is None or start_s is None or run.ends_s >= start_s
    )
    return frozenset(still) | {each.key for each in others if each.key != kept.key}


def _move_earlier(
    old: Reservation, look: Outlook, others: Sequence[Reservation]
) -> Asking[Reservation]:
    """Keep an earlier start if there is one by now."""
    record = look.snapshot.waiting.get(old.key) or old.record
    asker = look.asker_of(record)
    if asker is None:
        return old
    scene = Scene(table=look.table, kept=others)
    found = yield from reserve(asker, scene, record, before_s=old.start_s)
    if found is None or found.start_s is None:
        return old
    return structs.replace(found, since_s=old.since_s, moved=old.moved)


def _is_later(new: Reservation, old: Reservation) -> bool:
    if new.start_s is None or old.start_s is None:
        return new.start_s is None and old.start_s is not None
    return new.start_s > old.start_s


def _find_fault(kept: Reservation, look: Outlook, others: Iterable[Reservation]) -> str:
    """Say why a reservation does not hold as it is; empty: it does."""
    start_s, holders, runs = kept.start_s, frozenset(kept.after), look.table.runs
    overrun = _describe_overrun(kept, runs)
    if overrun:
        is_told = start_s is not None and kept.moved == overrun
        if not is_told or look.now_s >= (start_s or 0) + MOST_LATE_S:
            return overrun
        # Else it would move with every look for as long as that gang runs.
        start_s = look.now_s
    if start_s is None and not any(run.record.key in holders for run in runs):
        return "the gangs that it waited for have ended"
    if start_s is not None and start_s < look.now_s:
        return "it could not start when it was to"
    if not look.is_worse:
        return ""
    if start_s is None:
        held = (run.record for run in runs if run.record.key in holders)
        state = without_gangs(look.snapshot, held)
    else:
        state = look.table.at(start_s)
    asker = look.asker_of(kept.record)
    if asker is None:
        return ""
    beside = (e for e in others if e.is_during(start_s, kept.until_s))
    state = keep_clear(state, beside)
    fits = _judge_places(asker.question(state, kept.record, Tier.GANGS), kept.members)
    return "" if fits else "its devices or nodes cannot be used any more"


def _describe_overrun(kept: Reservation, runs: Iterable[Run]) -> str:
    """Say who of those that it waits for runs past its duration; empty: nobody."""
    late = [run for run in runs if run.overruns and run.record.key in kept.after]
    names = ", ".join(run.record.name for run in late[:3])
    return f"{names} runs for longer than its duration" if late else ""


def _judge_places(problem: Problem, members: Members) -> bool:
    """True if the judge lets a gang that is asked about alone have these places."""
    (gang,) = problem.gangs
    answer = GangDecision(
        uid=gang.uid, namespace=gang.namespace, name=gang.name, members=members
    )
    value = TierValue(
        tier=Tier.GANGS, priority=gang.priority, value=gang.weight, bound=None
    )
    decision = Decision(
        problem=problem.hash,
        status=Status.FEASIBLE,
        objective=(value,),
        gangs=(answer,),
        statistics=Statistics(),
    )
    return not gang.refused and not judge(problem, decision)
