"""Which nodes are lacked by gangs that were tried in vain, one gang after the other.

An autoscaler sees no pod at a scheduling gate, so this is what it is to be told. What
was found last is in the gang's decision; another leader finds it anew. Pure: time,
Snapshot and answers come from outside.

Source: docs/queues-and-time.md, "Nodes that are lacking".
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest

from contracts.allocation import Rule
from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from contracts.messages import NodesLacking
from solver.queueing.gang_queue import urgency_of
from solver.snapshot.snapshot import Snapshot
from solver.tiers import Tier
from solver.timeline.asking import Asker, Asking
from solver.timeline.changes import ChangeSearch
from solver.timeline.holdings import read_holding
from solver.timeline.keeper import OF_QUEUES, is_tried
from solver.timeline.runs import Seconds

MOST_GANGS = 64
"""Gangs that are told, those that come first in order."""
AFTER_S = 10
"""A gang that waits for less is not asked about: most are in by then."""
AGAIN_S = 30
"""From one answer about a gang to the next question about it."""
REST_S = 600
"""The same, if that question had no answer."""
_ASIDE = OF_QUEUES | {Rule.NOT_PROVEN}
"""Nodes are no help, or nobody knows."""

Lacks = tuple[NodesLacking, ...]


class Lacking:
    """What each gang lacks, as far as it was asked."""

    def __init__(self) -> None:
        self._known: dict[GangKey, Lacks] = {}
        self._asked_s: dict[GangKey, Seconds] = {}
        self._stale: tuple[GangKey, ...] = ()
        """Gangs that were told something, and are asked about no longer."""

    def choose(self, snapshot: Snapshot, now_s: Seconds) -> GangRecord | None:
        """Choose the gang that was asked about longest ago; None: nobody is due.

        Looks at all gangs that wait.
        """
        due, self._stale = _sort_waiting(snapshot, now_s)
        keys = {record.key for record in due}
        self._known = {key: of for key, of in self._known.items() if key in keys}
        self._asked_s = {key: at for key, at in self._asked_s.items() if key in keys}
        first = min(due, key=lambda r: self._asked_s.get(r.key, 0), default=None)
        if first is None or self._asked_s.get(first.key, 0) + AGAIN_S > now_s:
            return None
        self._asked_s[first.key] = now_s
        return first

    def rest(self, gang: GangKey, now_s: Seconds) -> None:
        """Leave a gang alone for longer of which a question had no answer."""
        self._asked_s[gang] = now_s + REST_S

    def ask(
        self, asker: Asker, snapshot: Snapshot, record: GangRecord, now_s: Seconds
    ) -> Asking[None]:
        """Ask what a gang lacks in a state of the cluster.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        question = asker.question(snapshot, record, Tier.GANGS)
        held = {
            each.key: read_holding(snapshot, each) for each in snapshot.placed.values()
        }
        search = ChangeSearch(question, record.key, (), held, now_s)
        self._known[record.key] = yield from search.find_lacking()

    def list_news(self, snapshot: Snapshot) -> Iterator[tuple[GangRecord, Lacks]]:
        """List gangs that were told something else, or are to be told nothing more."""
        for gang in (*self._known, *self._stale):
            record, lacks = snapshot.waiting.get(gang), self._known.get(gang, ())
            if record is not None and lacks != record.lacks:
                yield record, lacks


def _sort_waiting(
    snapshot: Snapshot, now_s: Seconds
) -> tuple[list[GangRecord], tuple[GangKey, ...]]:
    """List who is asked about, the most urgent first, and who was told in vain.

    Gangs that were told go on to be asked about, also if others come first by now.
    """
    due, stale = list[GangRecord](), list[GangKey]()
    for record in snapshot.waiting.values():
        if _is_due(record, now_s):
            due.append(record)
        elif record.lacks:
            stale.append(record.key)
    first = nsmallest(MOST_GANGS, due, key=urgency_of)
    known = {record.key for record in first}
    told = (each for each in due if each.lacks and each.key not in known)
    return [*first, *told], tuple(stale)


def _is_due(record: GangRecord, now_s: Seconds) -> bool:
    return is_tried(record, _ASIDE) and record.waits_since_s + AFTER_S <= now_s
