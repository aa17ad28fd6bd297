"""Gangs that have a place, and until when at most.

A duration is an upper bound that the author gives. Who runs past it counts as ending
now; who gave none may run for ever, and is taken to end after all others, the oldest
first. Whoever must go for another has gone by the time that was set. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

from msgspec import Struct

from contracts.ids import GangKey, NodeName
from contracts.lifecycle import GangRecord, is_preemption
from contracts.messages import DecisionMessage
from contracts.times import read_time
from solver.cache import Cache
from solver.snapshot.snapshot import Snapshot
from solver.timeline.futures import list_results

MOST_HELD = 8192
Seconds = int
"""Since the epoch."""
LATE_S = 60
"""Who was to have gone for another and has not is taken to take so much longer, so that
what is promised moves no more often."""


class Run(Struct, frozen=True, kw_only=True):
    """A gang that holds devices."""

    record: GangRecord
    since_s: Seconds
    ends_s: Seconds | None
    """At the latest, and not before now; None: nobody knows."""
    overruns: bool = False
    """True if it runs for longer than its duration."""


_HELD: Cache[GangKey, tuple[DecisionMessage | None, Counter[NodeName]]] = Cache(
    MOST_HELD
)
"""What gangs hold by the decision that gave it to them."""


def count_held(record: GangRecord) -> Mapping[NodeName, int]:
    """Count the devices that were decided for a gang's pods, node by node."""
    known = _HELD.get(record.key)
    if known is None or known[0] is not record.decision:
        pods = () if record.placed is None else record.placed.members
        counts = Counter[NodeName]()
        for pod in pods:
            counts[pod.node] += len(list_results((pod,)))
        known = _HELD.keep(record.key, (record.decision, counts))
    return known[1]


def list_runs(snapshot: Snapshot, now_s: Seconds) -> list[Run]:
    """List the gangs that have a place, in the order in which they are taken to end."""
    runs = [_make_run(record, now_s) for record in snapshot.placed.values()]
    return sorted(runs, key=_order_of)


def _make_run(record: GangRecord, now_s: Seconds) -> Run:
    ends_s, since_s = record.ends_by_s, ceil(record.placed_since_s)
    if record.command is not None:
        ends_s = _find_leave(record, now_s)
        return Run(record=record, since_s=since_s, ends_s=ends_s)
    if ends_s is not None and ends_s < now_s:
        return Run(record=record, since_s=since_s, ends_s=now_s, overruns=True)
    ends = [] if ends_s is None else [ends_s]
    if record.preempted_at(now_s) is not None:
        ends.append(_read_limit(record))
    return Run(record=record, since_s=since_s, ends_s=min(ends, default=None))


def _find_leave(record: GangRecord, now_s: Seconds) -> Seconds:
    """Find by when a gang that is ending has gone; one that takes long has a little."""
    limit_s, command = _read_limit(record), record.command
    if command is None or not is_preemption(command) or not limit_s:
        return now_s
    late_s = now_s - limit_s
    return limit_s if late_s < 0 else limit_s + (late_s // LATE_S + 1) * LATE_S


def _read_limit(record: GangRecord) -> Seconds:
    """Read by when it was to have gone for another; 0: it need not."""
    said = None if record.placed is None else record.placed.preempted
    return 0 if said is None else ceil(read_time(said.until))


def _order_of(run: Run) -> tuple[bool, int, int, GangKey]:
    return (run.ends_s is None, run.ends_s or 0, run.since_s, run.record.key)
