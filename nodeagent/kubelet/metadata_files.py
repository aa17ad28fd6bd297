"""The metadata files of one driver's prepared claims, for containers (KEP-5304).

One folder a claim, in the driver's own, which kubelet's node has under the same path.
Methods with no `async` block.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from contracts.claim import ResourceClaim
from contracts.ids import ClaimUID, DeviceID, NodeName
from nodeagent.cdi import Mount
from nodeagent.errors import PrepareError, SourceError
from nodeagent.kubelet.describe import describe_devices
from nodeagent.prepare import files
from nodeagent.prepare.metadata import DescribedDevice, MetadataFile, plan_metadata
from nodeagent.prepare.prepared import PreparedClaim
from nodeagent.sources.source import DeviceDescription, DeviceSource

_FOLDER_MODE, _FILE_MODE = 0o755, 0o644
"""Containers read as any user; what is in there their slice says to everybody."""


class MetadataFiles:
    """The files of a driver in one folder."""

    def __init__(
        self, folder: Path, node: NodeName, source: DeviceSource, *, are_wanted: bool
    ) -> None:
        """Not `are_wanted`: none are written, and those of before are removed."""
        self.are_wanted = are_wanted
        self._folder = folder
        self._node = node
        self._source = source

    async def write(
        self, claim: ResourceClaim, prepared: PreparedClaim
    ) -> Mapping[str, Mount]:
        """Write the files of a claim; returns their mounts by request.

        Raises:
            PrepareError: a name cannot be part of a path, or the devices cannot be
                listed now.
            OSError: a file cannot be written.
        """
        facts = await self._describe_devices(prepared.device_ids)
        planned = plan_metadata(claim, prepared, facts)
        return await asyncio.to_thread(self._write_files, prepared.claim.uid, planned)

    async def _describe_devices(
        self, devices: tuple[DeviceID, ...]
    ) -> dict[DeviceID, DescribedDevice]:
        try:
            found = await self._source.discover(self._node)
        except SourceError as error:
            raise PrepareError(f"no device can be described: {error.reason}") from error
        attributes = {
            DeviceID(pool.driver, pool.name, device.name): device.attributes
            for pool in found.pools
            for device in pool.devices
        }
        described = await describe_devices(self._source, devices)
        return {
            device: DescribedDevice(
                attributes=attributes.get(device, {}),
                description=described.get(device, DeviceDescription()),
            )
            for device in devices
        }

    def _write_files(
        self, uid: ClaimUID, planned: Iterable[MetadataFile]
    ) -> Mapping[str, Mount]:
        folder = files.place(self._folder, uid)
        files.make_folder(folder, _FOLDER_MODE)
        mounts = {}
        for file in planned:
            path = files.place(folder, f"{file.request}.json")
            files.write_quickly(path, file.content, _FILE_MODE)
            mounts[file.request] = file.mount(str(path))
        return mounts

    def remove(self, uid: ClaimUID) -> None:
        """Remove the files of a claim, if it has any.

        Raises:
            OSError: they may not be removed.
        """
        folder = files.place(self._folder, uid)
        if folder.exists():
            shutil.rmtree(folder)
