"""Writes events that people read: each when it is due, and not again too soon."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic

from msgspec import to_builtins

from contracts.names import REPORTER
from publisher.cluster.event_throttle import SAME_S, EventThrottle
from publisher.gangs.notes import Note
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, NotFoundError
from runtime.kube.kinds import EVENT
from runtime.log import get_logger

_NAME = 200
"""Characters of a name in the name of its event."""

log = get_logger(__name__)


class EventWriter:
    """What was told about each object, and when."""

    def __init__(self, api: KubernetesApi, name: str) -> None:
        """`name` is this publisher's, as events say who reports."""
        self._api = api
        self._name = name
        self._throttle = EventThrottle()

    async def tell(self, note: Note) -> None:
        """Write a note, unless it was told before; a failure is logged."""
        try:
            await self.write_due([note])
        except ApiError as error:
            log.warning("event.missed", about=note.reason, reason=str(error))

    async def write_due(self, pending: Sequence[Note]) -> list[float]:
        """Write the notes that are due; returns how long each has to wait then.

        Raises:
            ApiError: one of them could not be written.
        """
        waits_s = []
        for note in pending:
            wait_s = self._throttle.due_in_s(note, monotonic())
            if wait_s <= 0:
                await self._write_event(note)
                self._throttle.remember(note, monotonic())
                wait_s = SAME_S
            waits_s.append(wait_s)
        return waits_s

    async def _write_event(self, note: Note) -> None:
        regarding = note.regarding
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {
                "name": f"{regarding.name[:_NAME].rstrip('-.')}.{secrets.token_hex(8)}",
                "namespace": regarding.namespace,
            },
            "eventTime": time,
            "reportingController": REPORTER,
            "reportingInstance": self._name,
            "action": "Allocate",
            "type": note.type,
            "reason": note.reason,
            "note": note.message,
            "regarding": to_builtins(regarding),
        }
        if note.related is not None:
            body["related"] = to_builtins(note.related)
        # Its namespace may be gone by now.
        with suppress(NotFoundError):
            await self._api.create(EVENT, body)
