"""Prepares and unprepares the claims of one driver, as kubelet asks.

In the order that a crash at any point leaves nothing wrong: first the record, by which
the devices are held, then the programs that set devices up, then the CDI file; the
reverse to undo it. Both may be called again at any time and go on where they stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from datetime import UTC, datetime
from weakref import WeakValueDictionary

from msgspec import structs

from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, ClaimUID, DeviceID, DriverName, NodeName
from nodeagent.cdi import ContainerEdits, Mount, find_violations
from nodeagent.errors import CardChangedError, PrepareError, SourceError
from nodeagent.kubelet.describe import describe_devices
from nodeagent.kubelet.hooks import run_hook
from nodeagent.kubelet.metadata_files import MetadataFiles
from nodeagent.prepare.cdi_files import CdiFiles
from nodeagent.prepare.checkpoint import Checkpoint
from nodeagent.prepare.plan import (
    check_names,
    find_renamed,
    keep_cards,
    plan_devices,
)
from nodeagent.prepare.prepared import (
    PreparedClaim,
    PreparedDevice,
    describe_for_hook,
)
from nodeagent.sources.source import DeviceDescription, DeviceSource
from runtime.log import get_logger

log = get_logger(__name__)

ReadClaim = Callable[[ClaimRef], Awaitable[ResourceClaim]]
"""Reads a claim from the API server by name, or raises PrepareError."""
_LOCK_TRIES = 1000
_LOCK_PAUSE_S = 0.005
_UNKNOWN = DeviceDescription()


class Preparer:
    """Prepares and unprepares claims of one driver for kubelet; `open` comes first."""

    def __init__(
        self,
        driver: DriverName,
        node: NodeName,
        source: DeviceSource,
        read_claim: ReadClaim,
        *,
        checkpoint: Checkpoint,
        cdi: CdiFiles,
        metadata: MetadataFiles,
        on_prepared: Callable[[ClaimRef], None] = lambda _claim: None,
    ) -> None:
        """Prepare for a driver.

        Args:
            driver: of the devices.
            node: that it is on.
            source: where they come from.
            read_claim: reads claims.
            checkpoint: keeps what is prepared.
            cdi: tells container runtimes.
            metadata: files for containers about their devices.
            on_prepared: hears of each claim that is ready; it must not wait.
        """
        self.driver = driver
        self.checkpoint = checkpoint
        self._node = node
        self._source = source
        self._read_claim = read_claim
        self._cdi = cdi
        self._metadata = metadata
        self._on_prepared = on_prepared
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def open(self) -> None:
        """Read the checkpoint; blocks.

        Raises:
            OSError: a folder cannot be had.
        """
        self._cdi.open()
        self.checkpoint.open()

    async def prepare(self, asked: ClaimRef) -> PreparedClaim:
        """Make a claim's devices ready for containers.

        Raises:
            PrepareError: the claim is refused, or a device is not to be had now.
            OSError: the disk is full, or a folder may not be written.
        """
        check_names(asked)
        async with self._in_turn(asked.uid):
            claim = await self._read_claim(asked)
            planned = plan_devices(asked, claim, self._node, self.driver)
            devices, edits = await self._plan_edits(planned)
            devices = await self._add_cards(asked, devices)
            prepared = await self._make_record(asked, devices)
            await self._run_hooks(prepared, sets_up=True)
            if self._metadata.are_wanted:
                mounts = await self._metadata.write(claim, prepared)
                _add_mounts(edits, prepared, mounts)
            if edits:
                await asyncio.to_thread(self._cdi.write, prepared, edits)
            log.info(
                "claim.prepared",
                claim=str(asked),
                uid=asked.uid,
                devices=[str(device) for device in prepared.device_ids],
            )
            self._on_prepared(asked)
            return prepared

    async def _plan_edits(
        self, planned: Iterable[PreparedDevice]
    ) -> tuple[tuple[PreparedDevice, ...], dict[str, ContainerEdits]]:
        """Return the devices, and by CDI name what a container gets with them."""
        edits: dict[str, ContainerEdits] = {}
        devices: list[PreparedDevice] = []
        described: set[str] = set()
        for device in planned:
            edit = await self._make_edits(device)
            # The file about a request comes with its first device.
            is_first = device.base_request not in described
            described.add(device.base_request)
            name = ""
            if edit != ContainerEdits() or (self._metadata.are_wanted and is_first):
                name = device.cdi_name
                edits[name] = edit
            devices.append(structs.replace(device, cdi_name=name))
        return tuple(devices), edits

    async def _make_edits(self, device: PreparedDevice) -> ContainerEdits:
        device_id = DeviceID(self.driver, device.pool, device.device)
        try:
            edits = await self._source.edits(device_id)
        except SourceError as error:
            raise PrepareError(
                f"node {self._node!r} does not have device {device_id} now:"
                f" {error.reason}"
            ) from error
        variables = tuple(
            f"{name}={value}" for name, value in sorted(device.env.items())
        )
        edits = structs.replace(edits, env=(*edits.env, *variables))
        violation = next(find_violations(edits), None)
        if violation is not None:
            raise PrepareError(f"device {device_id}: its source says {violation}")
        return edits

    async def _add_cards(
        self, asked: ClaimRef, devices: tuple[PreparedDevice, ...]
    ) -> tuple[PreparedDevice, ...]:
        """Return the devices with the cards that they are now.

        Raises:
            PrepareError: a device is another card than it was, or its card is prepared
                under another name.
        """
        devices = await self._look_at_cards(devices)
        self.checkpoint.refresh()
        held = self.checkpoint.claims.get(asked.uid)
        if held is not None:
            devices = keep_cards(held, devices)
        others = (
            c for c in self.checkpoint.claims.values() if c.claim.uid != asked.uid
        )
        renamed = find_renamed(devices, others)
        now = await self._look_at_cards([device for _, device in renamed])
        for (claim, device), seen in zip(renamed, now, strict=True):
            if seen.card != device.card:
                raise PrepareError(
                    f"{device.card} is prepared for ResourceClaim {claim.claim} as"
                    f" {device.pool}/{device.device}, and has another name now: delete"
                    " the pod of that claim"
                )
        return devices

    async def _look_at_cards(
        self, devices: Sequence[PreparedDevice]
    ) -> tuple[PreparedDevice, ...]:
        """Return devices with the cards that they are now."""
        ids = [DeviceID(self.driver, device.pool, device.device) for device in devices]
        known = await describe_devices(self._source, ids)
        return tuple(
            structs.replace(device, card=known.get(device_id, _UNKNOWN).card)
            for device, device_id in zip(devices, ids, strict=True)
        )

    async def _make_record(
        self, asked: ClaimRef, devices: tuple[PreparedDevice, ...]
    ) -> PreparedClaim:
        self.checkpoint.refresh()
        held = self.checkpoint.claims.get(asked.uid)
        if held is not None and (held.claim, held.devices) == (asked, devices):
            return held
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wanted = PreparedClaim(
            claim=asked, driver=self.driver, devices=devices, since=since
        )
        staged = await asyncio.to_thread(self.checkpoint.stage, wanted)
        for _ in range(_LOCK_TRIES):
            if self.checkpoint.hold(wanted, staged):
                break
            await asyncio.sleep(_LOCK_PAUSE_S)
        else:
            staged.unlink(missing_ok=True)
            raise PrepareError(
                f"another agent of this node keeps the checkpoint of {self.driver}"
                " locked"
            )
        await asyncio.to_thread(self.checkpoint.sync)
        return wanted

    async def restore_cdi(self, uid: ClaimUID) -> None:
        """Write the CDI file of a prepared claim, unless it is as it should be.

        A container that starts again needs it, and kubelet asks for nothing then.

        Raises:
            CardChangedError: a device is another card now; the file is removed, so that
                no container gets that one.
            PrepareError: a device is not to be had now.
            KubernetesError: the claim, for metadata, cannot be read.
            OSError: the disk is full, or a folder may not be written.
        """
        async with self._in_turn(uid):
            self.checkpoint.refresh()
            held = self.checkpoint.claims.get(uid)
            if held is None:
                return
            try:
                keep_cards(held, await self._look_at_cards(held.devices))
            except CardChangedError:
                await asyncio.to_thread(self._cdi.remove, uid)
                raise
            named = [device for device in held.devices if device.cdi_name]
            edits = {
                device.cdi_name: await self._make_edits(device) for device in named
            }
            if self._metadata.are_wanted:
                claim = await self._read_claim(held.claim)
                _add_mounts(edits, held, await self._metadata.write(claim, held))
            # A runtime refuses a device that edits nothing.
            if edits and ContainerEdits() not in edits.values():
                await asyncio.to_thread(self._cdi.write, held, edits)

    async def unprepare(self, asked: ClaimRef) -> None:
        """Undo what was prepared for a claim; nothing was: that is as good.

        Raises:
            PrepareError: a program that tears a device down failed.
            OSError: a folder may not be written.
        """
        check_names(asked)
        async with self._in_turn(asked.uid):
            await asyncio.to_thread(self._cdi.remove, asked.uid)
            await asyncio.to_thread(self._metadata.remove, asked.uid)
            self.checkpoint.refresh()
            held = self.checkpoint.claims.get(asked.uid)
            if held is not None:
                await self._run_hooks(held, sets_up=False)
            self.checkpoint.release(asked.uid)
            if held is not None:
                await asyncio.to_thread(self.checkpoint.sync)
                log.info("claim.unprepared", claim=str(asked), uid=asked.uid)

    async def _run_hooks(self, prepared: PreparedClaim, *, sets_up: bool) -> None:
        for device in prepared.devices:
            device_id = DeviceID(self.driver, device.pool, device.device)
            hooks = self._source.find_hooks(device_id)
            if hooks is not None and not device.is_admin:
                command = hooks.set_up if sets_up else hooks.tear_down
                if command:
                    told = describe_for_hook(self.driver, prepared.claim, device)
                    await run_hook(command, told, hooks.limit_s)

    @contextlib.asynccontextmanager
    async def _in_turn(self, uid: ClaimUID) -> AsyncIterator[None]:
        """Let calls about one claim come one after the other."""
        lock = self._turns.setdefault(uid, asyncio.Lock())
        async with lock:
            yield


def _add_mounts(
    edits: dict[str, ContainerEdits],
    prepared: PreparedClaim,
    mounts: Mapping[str, Mount],
) -> None:
    """Let the first device of each request bring the file about the request."""
    missing = dict(mounts)
    for device in prepared.devices:
        mount = missing.pop(device.base_request, None)
        if mount is not None and device.cdi_name:
            edit = edits[device.cdi_name]
            edits[device.cdi_name] = structs.replace(edit, mounts=(*edit.mounts, mount))
