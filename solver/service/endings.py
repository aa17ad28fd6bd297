"""What is said without a solve: rejections unread, ends of gangs, notices; in batches.

A message of which the server wants nothing does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time

from contracts import topics
from contracts.allocation import Reason, Rule
from contracts.errors import ContractsError
from contracts.ids import ClusterName, GangKey, GangUID, Namespace
from contracts.lifecycle import is_preemption
from contracts.messages import (
    DecisionMessage,
    GangReleased,
)
from runtime.errors import PublishRefusedError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.wire import Outgoing, Refused
from solver.service import metrics
from solver.service.lead import Leadership
from solver.service.messages import make_rejection, make_release
from solver.snapshot.snapshot import Snapshot
from solver.timeline.candidates import make_candidate
from solver.timeline.preempting import is_leaving

MOST = 500
"""Gangs that end in one batch."""

_Word = tuple[DecisionMessage, Outgoing]

log = get_logger(__name__)


class Endings:
    """What is to be said of gangs that no solve decides."""

    def __init__(
        self,
        cluster: ClusterName,
        leadership: Leadership,
        refusals: Refusals,
        is_past: Callable[[GangKey], bool],
    ) -> None:
        """`is_past` tells whether a gang was answered before we began."""
        self._cluster = cluster
        self._leadership = leadership
        self._refusals = refusals
        self._is_past = is_past
        self._refused: dict[GangKey, Reason] = {}
        """Submissions that cannot be read: their senders are to get an answer."""
        self.aside: set[GangKey] = set()
        """Gangs of which nothing can be said."""

    def note_refused(self, refused: Refused) -> None:
        """Keep a submission that was refused, if it is one that can be answered."""
        try:
            _, namespace, uid = topics.SUBMISSIONS.names_of(refused.subject)
        except ContractsError:
            return  # nobody's subject: there is none for an answer either
        gang = GangKey(Namespace(namespace), GangUID(uid))
        if gang not in self.aside and not self._is_past(gang):
            reason = Reason(rule=Rule.INVALID, message=refused.reason)
            self._refused[gang] = reason

    async def publish(
        self, snapshot: Snapshot, notices: Sequence[DecisionMessage] = ()
    ) -> list[tuple[DecisionMessage, int]]:
        """Publish some of what is to be said, and notices; empty: there is nothing.

        Raises:
            PublishRefusedError: we do not lead any more.
            BusUnavailableError: the bus is away; try again.
        """
        words = [*self._make_rejections(snapshot), *self._make_releases(snapshot)]
        words += [
            (notice, Outgoing.of(topics.DECISIONS, notice))
            for notice in notices
            if notice.key not in self.aside
        ]
        said = await self._publish(words) if words else []
        for message, _ in said:
            self._refused.pop(message.key, None)
            if isinstance(message, GangReleased):
                _count_preempted(snapshot, message)
        if said:
            log.info("gangs.told", gangs=len(said))
        return said

    def _make_rejections(self, snapshot: Snapshot) -> list[_Word]:
        leader = (self._cluster, self._leadership.epoch)
        words: list[_Word] = []
        for gang, reason in list(self._refused.items())[:MOST]:
            record = snapshot.gangs.get(gang)
            if record is not None and record.decision is not None:
                del self._refused[gang]
                continue
            with self._refusals.guard(f"dec/{gang}") as guarded:
                message = make_rejection(
                    gang.namespace, gang.uid, "", (reason,), leader
                )
                words.append((message, Outgoing.of(topics.DECISIONS, message)))
            if guarded.refused is not None:
                self._put_aside(gang)
        return words

    def _make_releases(self, snapshot: Snapshot) -> list[_Word]:
        cluster, epoch = self._cluster, self._leadership.epoch
        words: list[_Word] = []
        for record in snapshot.ending.values():
            gang = record.key
            if record.ending is None or gang in self.aside:
                continue
            if is_leaving(snapshot, record):
                continue
            with self._refusals.guard(f"dec/{gang}") as guarded:
                message = make_release(
                    record, record.ending, cluster=cluster, epoch=epoch
                )
                words.append((message, Outgoing.of(topics.DECISIONS, message)))
            if guarded.refused is not None:
                self._put_aside(gang)
            if len(words) == MOST:
                break
        return words

    async def _publish(
        self, words: Sequence[_Word]
    ) -> list[tuple[DecisionMessage, int]]:
        """Publish all at once; what is refused in halves."""
        try:
            first = await self._leadership.publish([outgoing for _, outgoing in words])
        except PublishRefusedError as error:
            if error.kind != "other":
                raise
            if len(words) > 1:
                middle = len(words) // 2
                said = await self._publish(words[:middle])
                return [*said, *await self._publish(words[middle:])]
            ((message, outgoing),) = words
            self._refusals.note(
                Refused(subject=outgoing.subject, reason=error.reason, sequence=0)
            )
            self._put_aside(message.key)
            return []
        return [(message, first + i) for i, (message, _) in enumerate(words)]

    def _put_aside(self, gang: GangKey) -> None:
        self._refused.pop(gang, None)
        self.aside.add(gang)


def _count_preempted(snapshot: Snapshot, message: GangReleased) -> None:
    """Count a gang that ended for another, and the work that it lost."""
    record = snapshot.gangs.get(message.key)
    if message.command is None or record is None or not is_preemption(message.command):
        return
    metrics.PREEMPTED.inc()
    lost_s = make_candidate(snapshot, record).lost_s(time())
    metrics.PREEMPTED_DEVICE_SECONDS.inc(lost_s)
