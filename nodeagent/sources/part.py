"""One source of several: read at its own pace, and silent alone when it fails.

Whatever a source does, its devices stay as they were announced until it lists others;
while it does not answer they are silent, and health decides what comes of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct, structs

from contracts.device import DeviceAttribute, ResourcePool
from contracts.ids import DeviceID, NodeName, PoolID
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.health import Reading, Symptom
from nodeagent.inventory import NodeDevices
from nodeagent.sources.approve import approve
from nodeagent.sources.container_edits import join_edits
from nodeagent.sources.source import (
    DeviceDescription,
    DeviceSource,
    PartitionHooks,
    Readings,
)
from runtime.log import get_logger

log = get_logger(__name__)

_LIST_S = 1.0
"""How long others wait for a listing; a later one comes when it is there."""
_SILENT_AFTER_S = 10.0
"""A source that does not answer for so long has failed."""
_RETRY_S = 5.0
REFUSED = "DeviceRefused"
"""Reason of a device whose description cannot be taken."""
NOT_LISTED = "NotListed"
"""Reason of another driver's device that the source had and has no more."""
SOURCE_FAILED = "SourceFailed"
"""Reason of all devices of a source that fails."""


class Additions(Struct, frozen=True, kw_only=True):
    """What the sources file adds to each device of a source."""

    attributes: Mapping[str, DeviceAttribute] = {}
    edits: ContainerEdits = ContainerEdits()
    hooks: PartitionHooks | None = None


class SourcePart:
    """A source with its place among others."""

    def __init__(
        self,
        name: str,
        source: DeviceSource,
        node: NodeName,
        *,
        read_s: float,
        pool: PoolID | None = None,
        additions: Additions | None = None,
        health_only: bool = False,
    ) -> None:
        self.name = name
        self.source = source
        self.health_only = health_only
        """True if another driver publishes the devices: only health is sent."""
        self._node = node
        self._read_s = read_s
        self._pool = pool
        """Its only pool; None: it has several, and none needs to be recalled."""
        self._additions = additions or Additions()
        self._devices: NodeDevices | None = None
        self._ids: frozenset[DeviceID] = frozenset()
        self._missing: frozenset[DeviceID] = frozenset()
        """Devices of another driver that were listed once: it may offer them still."""
        self._refusals: Mapping[DeviceID, str] = {}
        self._reading: asyncio.Future[Readings] | None = None
        self._listing: asyncio.Future[NodeDevices] | None = None
        self._asked_s = 0.0
        self._read_due_s = 0.0
        self._list_due_s: float | None = None
        """When to list again after a failure."""
        self._failures: dict[str, str] = {}
        """Current failures of `read` and `discover`, with their reasons."""

    @property
    def devices(self) -> NodeDevices | None:
        """Devices accepted from the last listing; None: nothing is known."""
        if self._devices is None or not self.health_only:
            return self._devices
        watched = (*self._devices.device_ids, *sorted(self._missing))
        return NodeDevices(node=self._node, watched=watched)

    def recall(self, pools: tuple[ResourcePool, ...]) -> None:
        """Take what was announced before this process began, until it is listed."""
        ours = tuple(
            structs.replace(pool, generation=0)
            for pool in pools
            if PoolID(pool.driver, pool.name) == self._pool
        )
        if self._devices is None and ours:
            self._keep_devices(NodeDevices(node=self._node, pools=ours))

    def _keep_devices(self, devices: NodeDevices) -> None:
        listed = frozenset(devices.device_ids)
        if self.health_only:
            self._missing = (self._missing | self._ids) - listed
        self._devices, self._ids = devices, listed

    async def discover(self) -> None:
        """List the devices again, unless that fails or takes long."""
        if self._listing is None:
            self._listing = asyncio.ensure_future(self.source.discover(self._node))
        await asyncio.wait((self._listing,), timeout=_LIST_S)
        if not self._listing.done():
            return
        listing, self._listing = self._listing, None
        try:
            approved = approve(
                listing.result(),
                self._devices,
                self._pool,
                self._additions.attributes,
            )
        except SourceError as error:
            self._note_failure("discover", error.reason)
        except ValueError as error:
            self._note_failure("discover", f"refused: {error}")
        except Exception as error:  # a mistake of ours in one source
            log.exception("source.broken", source=self.name)
            self._note_failure("discover", type(error).__name__)
        else:
            self._keep_devices(approved.devices)
            self._list_due_s = None
            self._note_refusals(approved.refusals)
            self._note_success("discover")

    def _note_refusals(self, refusals: Mapping[DeviceID, str]) -> None:
        for device, rule in refusals.items():
            if self._refusals.get(device) != rule:
                log.warning(
                    "device.refused", source=self.name, device=str(device), rule=rule
                )
        self._refusals = refusals

    def start_reading(self, now_s: float) -> asyncio.Future[Readings] | None:
        """Begin to read if that is due and not under way."""
        if self._reading is not None or now_s < self._read_due_s:
            return None
        self._asked_s = now_s
        self._read_due_s = now_s + self._read_s
        self._reading = asyncio.ensure_future(self.source.read(now_s))
        return self._reading

    def take_readings(self, now_s: float) -> Readings:
        """Return what is known by now; never fails."""
        readings = self._take_answer(now_s)
        refused = self._read_all(
            self._ids & self._refusals.keys(), REFUSED, self._refusals
        )
        gone = dict.fromkeys(self._missing, "the source no longer lists it")
        missing = self._read_all(self._missing, NOT_LISTED, gone)
        changed = self._node in readings.changed or self._must_list(now_s)
        return structs.replace(
            readings,
            symptoms={
                self._node: (
                    *readings.symptoms.get(self._node, ()),
                    *refused,
                    *missing,
                ),
            },
            changed=frozenset({self._node} if changed else ()),
        )

    def _must_list(self, now_s: float) -> bool:
        """True if a late listing has come, or it is time to try again."""
        if self._listing is not None:
            return self._listing.done()
        if "discover" not in self._failures:
            return False
        if self._list_due_s is None:
            self._list_due_s = now_s + _RETRY_S
        if now_s < self._list_due_s:
            return False
        self._list_due_s = None
        return True

    def _take_answer(self, now_s: float) -> Readings:
        reading = self._reading
        if reading is not None and reading.done():
            self._reading = None
            try:
                readings = reading.result()
            except SourceError as error:
                self._note_failure("read", error.reason)
            except Exception as error:  # a mistake of ours in one source
                log.exception("source.broken", source=self.name)
                self._note_failure("read", type(error).__name__)
            else:
                self._note_success("read")
                if not self._failures:
                    return readings
        elif reading is not None and now_s - self._asked_s >= _SILENT_AFTER_S:
            self._note_failure("read", f"no answer for {_SILENT_AFTER_S:g} s")
        if self._failures:
            why = dict.fromkeys(self._ids, "; ".join(self._failures.values()))
            symptoms = {self._node: self._read_all(self._ids, SOURCE_FAILED, why)}
            return Readings(symptoms=symptoms)
        return Readings(unread=self._ids)

    def _read_all(
        self,
        devices: frozenset[DeviceID],
        reason: str,
        messages: Mapping[DeviceID, str],
    ) -> tuple[Reading, ...]:
        return tuple(
            Reading(device, Symptom.SILENT, messages[device], reason)
            for device in sorted(devices)
        )

    def _note_failure(self, what: str, reason: str) -> None:
        if self._failures.get(what) != reason:
            log.warning("source.silent", source=self.name, doing=what, reason=reason)
        self._failures[what] = reason

    def _note_success(self, what: str) -> None:
        if self._failures.pop(what, None) is not None:
            log.info("source.answers", source=self.name, doing=what)

    async def edits(self, device: DeviceID) -> ContainerEdits | None:
        """Return what a container gets with a device; None: it is not of this source.

        Raises:
            SourceError: the device cannot be described now.
        """
        if device not in self._ids:
            return None
        return join_edits(await self.source.edits(device), self._additions.edits)

    async def describe(self, device: DeviceID) -> DeviceDescription | None:
        """Return what is known of a device; None: it is not of this source.

        Raises:
            SourceError: nothing can be read of it now.
        """
        return await self.source.describe(device) if device in self._ids else None

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:
        """Return the programs of a device; None: none, or it is not of this source.

        Those of the sources file are of the pool: a device that is gone is torn down.
        """
        if self._additions.hooks and self._pool == PoolID(device.driver, device.pool):
            return self._additions.hooks
        return self.source.find_hooks(device) if device in self._ids else None

    async def close(self) -> None:
        """End what is still asked."""
        asked = [task for task in (self._reading, self._listing) if task is not None]
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
