"""Writes what people read: the status of Gang objects and events, behind the work.

Never in the way of an allocation: told later, a few writes at a time, and only what is
new. What still holds is told again before its event is forgotten.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from contracts.names import REPORTER
from publisher.cluster.delay_queue import DelayQueue
from publisher.cluster.event_throttle import SAME_S, EventThrottle
from publisher.cluster.observer import Observer
from publisher.errors import ApiError, NotFoundError
from publisher.gangs.situation import StatusReport
from publisher.gangs.status import Note, gang_status, is_past, notes
from publisher.gangs.view import GroupKey
from publisher.kube.api import KubernetesApi
from publisher.kube.kinds import EVENT, GANG
from runtime.log import get_logger
from runtime.run import Task
from runtime.waits import first_of

_SETTLE_S = 1.0
"""What lasts less is not told."""
_AGAIN_S = 10.0
"""When to try what could not be written."""
_NAME = 200
"""Characters of a name in the name of its event."""

log = get_logger(__name__)


class StatusWriter:
    """What should be told of each group, and what was."""

    def __init__(
        self,
        api: KubernetesApi,
        observed: Observer,
        name: str,
        now: Callable[[], str],
    ) -> None:
        self._api = api
        self._observed = observed
        self._name = name
        self._now = now
        self._holds: dict[GroupKey, tuple[StatusReport, ...]] = {}
        """What was last said of each group, while there is something to say."""
        self._agenda: DelayQueue[GroupKey] = DelayQueue()
        self._said = EventThrottle()
        self._wake = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """Events, statuses and failures."""

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {"tell": self._tell}

    def tell(self, group: GroupKey, told: Sequence[StatusReport]) -> None:
        """Tell this of a group, unless something else is to be told soon."""
        before = self._holds.get(group, ())
        self._holds[group] = tuple(told)
        soon_s = monotonic() + _SETTLE_S
        if _gist(before) == _gist(told):
            self._agenda.put_by(group, soon_s)
        else:
            self._agenda.put(group, soon_s)
        self._wake.set()

    def fall_silent(self) -> None:
        """Tell nothing more of what was known: another publisher does."""
        self._holds.clear()
        self._agenda.clear()

    async def _tell(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._wake.clear()
            next_s = self._agenda.next_s()
            if next_s is not None and next_s <= monotonic():
                await self._tell_of(self._agenda.take())
            else:
                within_s = None if next_s is None else next_s - monotonic()
                await first_of(stop, self._wake, within_s=within_s)

    async def _tell_of(self, group: GroupKey) -> None:
        told = self._holds.get(group, ())
        if not told:
            self._holds.pop(group, None)
        await self.tell_now(group, told)

    async def tell_now(self, group: GroupKey, told: Sequence[StatusReport]) -> None:
        """Tell what would be gone before it is due, such as why pods are deleted."""
        try:
            await self._tell_group(group, told)
        except ApiError as error:
            self.counts["failed"] += 1
            log.warning("status.missed", gang=str(group), reason=str(error))
            self._agenda.put_by(group, monotonic() + _AGAIN_S)

    async def _tell_group(self, group: GroupKey, told: Sequence[StatusReport]) -> None:
        gang = self._observed.view.gang(group)
        if gang is not None:
            known = self._observed.statuses.get(str(group), {})
            pods = self._observed.view.pods(group)
            if is_past(pods, known):
                return
            status = gang_status(gang, told, pods, known, self._now())
            if any(known.get(name) != value for name, value in status.items()):
                await self._write_status(str(group), status)
        await self._write_notes(group, list(notes(told, gang)))

    async def _write_notes(self, group: GroupKey, found: Sequence[Note]) -> None:
        """Write the notes that are due, and look at the others when they are."""
        waits = []
        for note in found:
            wait_s = self._said.due_in_s(note, monotonic())
            if wait_s <= 0:
                await self._write_event(note)
                self._said.remember(note, monotonic())
                wait_s = SAME_S
            waits.append(wait_s)
        if waits:
            self._agenda.put_by(group, monotonic() + min(waits))

    async def _write_status(self, key: str, status: dict[str, Any]) -> None:
        try:
            body = {"status": status}
            raw = await self._api.patch(GANG, key, body, subresource="status")
        except NotFoundError:
            return
        self._observed.believe("Gang", key, raw, raw["metadata"]["uid"])
        self.counts["status"] += 1

    async def _write_event(self, note: Note) -> None:
        about = note.about
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {
                "name": f"{about.name[:_NAME]}.{secrets.token_hex(8)}",
                "namespace": about.namespace,
            },
            "eventTime": time,
            "reportingController": REPORTER,
            "reportingInstance": self._name,
            "action": "Allocate",
            "type": note.type,
            "reason": note.reason,
            "note": note.message,
            "regarding": {
                "apiVersion": GANG.api_version if note.kind == GANG.name else "v1",
                "kind": note.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
        }
        try:
            await self._api.create(EVENT, body)
        except NotFoundError:
            return
        self.counts["event"] += 1


def _gist(told: Sequence[StatusReport]) -> list[tuple[str, str]]:
    return [(item.phase, item.reason) for item in told]
