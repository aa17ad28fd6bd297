"""A source that reads the devices of its node in one thread of its own.

A file or a library of a sick device may answer late; that holds up this source alone.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.inventory import NodeDevices
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings
from nodeagent.sources.source_spec import DeviceSourceSpec

T = TypeVar("T")


class ThreadedSource(ABC):
    """The devices of one driver on this node; subclasses read them in the thread."""

    def __init__(self, kind: str, spec: DeviceSourceSpec, node: NodeName) -> None:
        self._kind = kind
        self._node = node
        self._driver = spec.driver
        self._pool = spec.pool_of(node)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=kind)

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The node that this agent is on."""
        return (self._node,)

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        """The one driver of the settings."""
        return (self._driver,)

    async def discover(self, node: NodeName) -> NodeDevices:
        """List the devices of the node.

        Raises:
            SourceError: it is another node, or they cannot be listed now.
        """
        if node != self._node:
            raise SourceError(self._kind, f"no node is named {node!r}")
        return await self._run(self._list_devices)

    async def read(self, now_s: float) -> Readings:
        """Read all devices.

        Raises:
            SourceError: they cannot be read now.
        """
        return await self._run(lambda: self._read_devices(now_s))

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Return the container edits of a device as it is now.

        Raises:
            SourceError: the device is not here, or cannot be given to a container now.
        """
        return await self._run(lambda: self._make_edits(device))

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Return the description of a device.

        Raises:
            SourceError: the device is not here.
        """
        return await self._run(lambda: self._describe_device(device))

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:  # noqa: ARG002
        """Return None: nothing is partitioned here."""
        return None

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _identify(self, name: DeviceName) -> DeviceID:
        return DeviceID(self._driver, self._pool, name)

    async def _run(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function)

    @abstractmethod
    def _list_devices(self) -> NodeDevices: ...

    @abstractmethod
    def _read_devices(self, now_s: float) -> Readings: ...

    @abstractmethod
    def _make_edits(self, device: DeviceID) -> ContainerEdits: ...

    @abstractmethod
    def _describe_device(self, device: DeviceID) -> DeviceDescription: ...
