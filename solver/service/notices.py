"""What waiting gangs are told that are not tried: others come first, and why.

Told once: whoever has another reason keeps it until the next try. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from contracts.allocation import Reason, Rule
from contracts.ids import ClusterName, GangKey, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import GangPending
from solver.queueing.gang_queue import GangQueue
from solver.snapshot.snapshot import Snapshot

QUEUED_S = 5.0
"""A gang that was not tried for so long is told; most are decided sooner."""
MOST = 500
"""Gangs that are told in one batch."""


class Notices:
    """Who is to be told that it was not tried."""

    def __init__(self, cluster: ClusterName, queue: GangQueue) -> None:
        self._cluster = cluster
        self._queue = queue
        self._silent: dict[GangKey, float] = {}
        """Gangs that wait without any reason, and since when; the oldest first."""

    def follow(self, record: GangRecord, now: float) -> None:
        """Take note of what became of a gang."""
        if record.wants_decision and not record.reasons:
            self._silent.setdefault(record.key, now)
        else:
            self._silent.pop(record.key, None)

    def make(
        self, snapshot: Snapshot, now: float, epoch: int
    ) -> tuple[GangPending, ...]:
        """Make what is to be said now, to some of those who are to be told."""
        told = islice(self._find(snapshot, now), MOST)
        return tuple(
            GangPending(
                cluster=self._cluster,
                namespace=record.namespace,
                name=record.name,
                uid=record.uid,
                solve=SolveID(""),
                attempt=record.attempt,
                epoch=epoch,
                reasons=(reason,),
            )
            for record, reason in told
        )

    def _find(
        self, snapshot: Snapshot, now: float
    ) -> Iterator[tuple[GangRecord, Reason]]:
        for gang in list(self._queue.displaced):
            record = snapshot.waiting.get(gang)
            if record is None or _is_told(record):
                del self._queue.displaced[gang]
            else:
                yield record, self._make_quota_reason(gang)
        for gang, since in list(self._silent.items()):
            if now - since < QUEUED_S:
                return
            record = snapshot.waiting.get(gang)
            if record is not None and self._queue.is_lined_up(gang):
                yield record, Reason(rule=Rule.QUEUED, message=_QUEUED)

    def _make_quota_reason(self, gang: GangKey) -> Reason:
        places = self._queue.places
        waiting, limit = places.count(gang.namespace), places.limit_of(gang.namespace)
        return Reason(
            rule=Rule.GANG_QUOTA,
            subject=f"namespace {gang.namespace}",
            message=f"{waiting} of its gangs wait; the {limit} most urgent are tried",
            facts={"waiting": waiting, "limit": limit or 0},
        )


_QUEUED = "it has not been tried yet: other gangs went first"


def _is_told(record: GangRecord) -> bool:
    return any(reason.rule is Rule.GANG_QUOTA for reason in record.reasons)
