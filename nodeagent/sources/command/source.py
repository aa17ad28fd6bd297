"""The source `command`: an executable that is run now and then, and lists devices.

Run anew each time rather than kept: it has nothing to remember and needs no watching
over, one that hangs or crashes costs one answer, and a page of shell can be one.
"""

from __future__ import annotations

from collections.abc import Mapping

from contracts.device import ResourcePool
from contracts.errors import DecodeError
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.health import Reading, Symptom
from nodeagent.inventory import NodeDevices
from nodeagent.sources.command.answer import AnsweredDevice, read_answer
from nodeagent.sources.command.process import run_command
from nodeagent.sources.command.settings import CommandSpec
from nodeagent.sources.container_edits import join_edits, name_device
from nodeagent.sources.part import REFUSED
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings
from runtime.log import get_logger

log = get_logger(__name__)


class CommandSource:
    """The devices that a command last listed."""

    def __init__(self, spec: CommandSpec, node: NodeName) -> None:
        self._spec = spec
        self._node = node
        self._pool = spec.pool_of(node)
        self._devices: Mapping[str, AnsweredDevice] | None = None
        self._refusals: Mapping[str, str] = {}
        self.drivers: tuple[DriverName, ...] = (spec.driver,)

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The one node."""
        return (self._node,)

    async def discover(self, node: NodeName) -> NodeDevices:
        """Return what was listed last; runs the command if it never was.

        Raises:
            SourceError: another node, or no answer that can be used.
        """
        if node != self._node:
            name = self._spec.name
            raise SourceError(name, f"the node is {self._node!r}, not {node!r}")
        devices = await self._run_command() if self._devices is None else self._devices
        pool = ResourcePool(
            driver=self._spec.driver,
            name=self._pool,
            devices=tuple(device.to_device() for device in devices.values()),
        )
        return NodeDevices(node=node, pools=(pool,))

    async def read(self, now_s: float) -> Readings:  # noqa: ARG002 # asked each time
        """Run the command.

        Raises:
            SourceError: it fails, or its answer cannot be used.
        """
        before = self._devices
        devices = await self._run_command()
        is_changed = before is None or _list_identities(before) != _list_identities(
            devices
        )
        return Readings(
            symptoms={self._node: tuple(self._find_sick())},
            changed=frozenset({self._node} if is_changed else ()),
        )

    async def _run_command(self) -> Mapping[str, AnsweredDevice]:
        spec = self._spec
        variables = {
            "MOORINGS_NODE": self._node,
            "MOORINGS_DRIVER": spec.driver,
            "MOORINGS_POOL": self._pool,
        }
        data = await run_command(spec.name, spec.exec, variables, spec.limit_seconds)
        try:
            answer = read_answer(data, self._devices or {})
        except DecodeError as error:
            raise SourceError(spec.name, f"its answer is refused: {error}") from error
        for name, rule in answer.refusals.items():
            if self._refusals.get(name) != rule:
                log.warning("device.refused", source=spec.name, device=name, rule=rule)
        self._devices, self._refusals = answer.devices, answer.refusals
        return answer.devices

    def _find_sick(self) -> list[Reading]:
        readings: list[Reading] = []
        for name, device in (self._devices or {}).items():
            device_id = self._id_of(name)
            if name in self._refusals:
                rule = self._refusals[name]
                readings.append(Reading(device_id, Symptom.SILENT, rule, REFUSED))
            elif device.health is not None:
                health = device.health
                readings.append(
                    Reading(device_id, health.symptom, health.message, health.reason)
                )
        return readings

    def _id_of(self, name: str) -> DeviceID:
        return DeviceID(self._spec.driver, self._pool, DeviceName(name))

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Return what the command said, and a variable that names the device.

        Raises:
            SourceError: it lists no such device.
        """
        return join_edits(name_device(device), self._find(device).edits)

    def _find(self, device: DeviceID) -> AnsweredDevice:
        found = (self._devices or {}).get(device.device)
        if found is None or device != self._id_of(found.name):
            raise SourceError(self._spec.name, f"{device} is not here")
        return found

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Return what the command says of it, and its card if attributes name one.

        Raises:
            SourceError: it lists no such device.
        """
        return self._find(device).describe()

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:  # noqa: ARG002
        """Return None: there is nothing to set up."""
        return None


def _list_identities(devices: Mapping[str, AnsweredDevice]) -> list[object]:
    return [device.to_device() for device in devices.values()]
