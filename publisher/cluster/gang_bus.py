"""What is said of gangs on the bus: read into Submissions, and said by us.

Four streams, each read on its own; nothing may be decided before all four were read to
where they stood at the start. Knows no Kubernetes object.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from contracts import messages, subjects
from contracts.codec import Codec
from contracts.errors import ContractsError
from contracts.ids import ClusterName, GangUID, Namespace
from contracts.messages import (
    CancelGang,
    ConfirmationMessage,
    ReleaseGang,
    SubmitGang,
)
from publisher.gangs.situation import SHOWN, GangMessage
from publisher.gangs.submissions import Submission, Submissions
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.errors import PublishRefusedError, RestartError
from runtime.log import get_logger
from runtime.run import Task
from runtime.wire import Outgoing, Received

log = get_logger(__name__)


class _Followed(Struct, frozen=True):
    entity: str
    codec: Codec[Any]


_STREAMS = {
    "SUBMIT": _Followed("submit", messages.SUBMISSION),
    "CMD": _Followed("cmd", messages.COMMAND),
    "DEC": _Followed("dec", messages.DECISION),
    "CONF": _Followed("conf", messages.CONFIRMATION),
}


class GangBus:
    """Submissions as the bus has them, and the way to say something of a gang."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        changed: Callable[[Iterable[GroupKey]], Awaitable[None]],
    ) -> None:
        self._cluster = cluster
        self._bus = bus
        self._submissions = Submissions()
        self._changed = changed
        self._unsynced = set(_STREAMS)
        self.synced = asyncio.Event()
        """Set once everything was read that was there at the start."""
        self.counts: Counter[str] = Counter()
        """Messages taken in, refused and said, by entity."""

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {
            f"gangs-{followed.entity}": self._follower(stream, followed)
            for stream, followed in _STREAMS.items()
        }

    def _follower(self, stream: str, followed: _Followed) -> Task:
        async def follow(stop: asyncio.Event) -> None:
            wanted = [subjects.wildcard(followed.entity, self._cluster)]
            async for page in self._bus.follow(stream, wanted, stop):
                if page.restarted:
                    # What we believe was said there: it is found out at a start.
                    raise RestartError(f"the stream {stream} has lost messages")
                taken = [self._take(item, followed) for item in page.messages]
                await self._changed({group for group in taken if group is not None})
                if page.synced and stream in self._unsynced:
                    self._unsynced.discard(stream)
                    log.info("stream.synced", stream=stream)
                    if not self._unsynced:
                        self.synced.set()

        return follow

    def _take(self, received: Received, followed: _Followed) -> GroupKey | None:
        """Believe a message; gives the group that it is about."""
        if received.gone:
            return None
        try:
            message = followed.codec.decode(received.data)
        except ContractsError as error:
            self.counts[f"{followed.entity}.refused"] += 1
            subject, reason = received.subject, str(error)[:SHOWN]
            log.error("message.refused", subject=subject, reason=reason)  # noqa: TRY400 # the reason is the whole story
            return None
        self.counts[followed.entity] += 1
        return self._submissions.apply(message, received.sequence)

    def groups(self) -> Iterator[GroupKey]:
        """Go through the groups of which something was said."""
        return self._submissions.groups()

    def of_group(self, group: GroupKey) -> tuple[Submission, ...]:
        """Give what was submitted for a group."""
        return self._submissions.of_group(group)

    def forgotten(self, uid: GangUID) -> bool | None:
        """Say of a gang that was forgotten whether its pods are asked for again."""
        return self._submissions.forgotten(uid)

    def forget(self, uids: Iterable[GangUID]) -> None:
        """Drop submissions of which nothing is left."""
        self._submissions.forget(uids)

    async def say(
        self, message: GangMessage, submissions: Iterable[Submission]
    ) -> None:
        """Publish a message and believe it at once.

        It was planned from these submissions: a confirmation is only the next one if
        nobody has confirmed anything since.

        Raises:
            BusError: it could not be stored.
            ContractsError: what was confirmed before cannot be read.
        """
        subject, data = _addressed(message)
        expected = None
        if isinstance(message, ConfirmationMessage):
            known = (s.confirmed_at for s in submissions if s.uid == message.uid)
            expected = next(known, 0)
        outgoing = Outgoing(
            subject=subject, data=data, expected_last_subject_sequence=expected
        )
        try:
            sequence = await self._bus.publish(outgoing)
        except PublishRefusedError as error:
            if error.kind == "stale":
                await self._read_again(message.uid, subject)
                return
            # Written once: another publisher submitted the same pods before us.
            if error.kind != "exists":
                raise
            sequence = 0
        self._submissions.apply(message, sequence)
        self.counts["said"] += 1

    async def _read_again(self, uid: GangUID, subject: str) -> None:
        """Believe what is confirmed of a gang: somebody was faster, or all was lost.

        Raises:
            ContractsError: it cannot be read, so nothing can be said after it.
        """
        self.counts["stale"] += 1
        found = await self._bus.last("CONF", subject)
        if found is None:
            self._submissions.correct(uid, None, 0)
            return
        message = messages.CONFIRMATION.decode(found.data)
        self._submissions.correct(uid, message, found.sequence)


def _addressed(message: GangMessage) -> tuple[str, bytes]:
    match message:
        case SubmitGang():
            namespace = Namespace(message.gang.metadata.namespace)
            subject = subjects.submit(message.cluster, namespace, message.uid)
            return subject, messages.SUBMISSION.encode(message)
        case CancelGang() | ReleaseGang():
            subject = subjects.command(message.cluster, message.namespace, message.uid)
            return subject, messages.COMMAND.encode(message)
        case _:
            return _confirmation(message)


def _confirmation(message: ConfirmationMessage) -> tuple[str, bytes]:
    subject = subjects.confirmation(message.cluster, message.namespace, message.uid)
    return subject, messages.CONFIRMATION.encode(message)
