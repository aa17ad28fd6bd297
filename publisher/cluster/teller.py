"""Writes what people read: the status of Gang objects and events, behind the work.

Never in the way of an allocation: told later, a few writes at a time, and only what is
new. A failed note is dropped: it says nothing that the objects do not.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.process.log import get_logger
from contracts.process.run import Task
from publisher.api import KubernetesApi
from publisher.cluster.observed import Observed
from publisher.cluster.plan_status import Note, gang_status, notes
from publisher.cluster.plan_submission import Told
from publisher.cluster.view import GroupKey
from publisher.errors import ApiError, NotFoundError
from publisher.kinds import EVENT, GANG

_SETTLE_S = 1.0
"""What lasts less is not told."""
_REMEMBERED = 50_000
_NAME = 200
"""Characters of a name in the name of its event."""
_REPORTER = "moorings.dev/publisher"

log = get_logger(__name__)


class Teller:
    """What should be told of each group, and what was."""

    def __init__(
        self,
        api: KubernetesApi,
        observed: Observed,
        name: str,
        now: Callable[[], str],
    ) -> None:
        self._api = api
        self._observed = observed
        self._name = name
        self._now = now
        self._waiting: dict[GroupKey, tuple[Told, ...]] = {}
        self._told: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._wake = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """Events, statuses and failures."""

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {"tell": self._tell}

    def tell(self, group: GroupKey, told: Sequence[Told]) -> None:
        """Tell this of a group, unless something else is to be told soon."""
        self._waiting[group] = tuple(told)
        self._wake.set()

    async def _tell(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            due, self._waiting = self._waiting, {}
            self._wake.clear()
            for group, told in due.items():
                if group in self._waiting or stop.is_set():
                    continue
                try:
                    await self._tell_group(group, told)
                except ApiError as error:
                    self.counts["failed"] += 1
                    log.warning("status.missed", gang=str(group), reason=str(error))
            await _wait(stop, _SETTLE_S)
            if not self._waiting:
                await _either(stop, self._wake)

    async def _tell_group(self, group: GroupKey, told: Sequence[Told]) -> None:
        gang = self._observed.view.gang(group)
        if gang is not None:
            known = self._observed.statuses.get(str(group), {})
            pods = self._observed.view.pods(group)
            status = gang_status(gang, told, pods, known, self._now())
            if any(known.get(name) != value for name, value in status.items()):
                await self._write_status(str(group), status)
        for note in notes(told, gang):
            if note.key not in self._told:
                await self._write_event(note)
                self._remember(note)

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
            "reportingController": _REPORTER,
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

    def _remember(self, note: Note) -> None:
        self._told[note.key] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


async def _either(stop: asyncio.Event, wake: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(wake.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
