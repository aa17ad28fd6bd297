"""The source `simulated`: a fleet file, and faults that can be added while it runs.

The faults file is looked at before every reading and read again when it was replaced;
write it whole and rename it into place. A faults file that breaks a rule is named in
the log and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import structs

from contracts.ids import DeviceID, DriverName, NodeName
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SettingsError, SourceError
from nodeagent.inventory import NodeDevices
from nodeagent.sources.container_edits import name_device
from nodeagent.sources.expand import Nodes, expand
from nodeagent.sources.faults import FaultSpan, find_faults, plan_faults
from nodeagent.sources.fleet import read_faults, read_fleet
from nodeagent.sources.settings import read_text
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings
from runtime.log import get_logger

log = get_logger(__name__)

_Signature = tuple[int, int, int]


def open_simulated(
    fleet_file: Path, faults_file: Path | None, node: NodeName | None
) -> SimulatedSource:
    """Read a fleet file; with `node`, stand for that node alone.

    A node that the fleet has not has no devices: a DaemonSet runs on nodes that nobody
    wrote into its fleet, and must not end there.

    Raises:
        SettingsError: a file cannot be read or breaks a rule.
    """
    name = str(fleet_file)
    fleet = read_fleet(read_text(fleet_file), name)
    nodes = expand(fleet, name, node)
    if node is not None and node not in nodes.by_name:
        log.warning("fleet.without_node", file=name, node=node)
    return SimulatedSource(
        nodes, plan_faults(fleet.faults, nodes, name), faults_file, node
    )


class SimulatedSource:
    """Devices of a fleet file."""

    def __init__(
        self,
        nodes: Nodes,
        spans: tuple[FaultSpan, ...],
        faults_file: Path | None = None,
        only: NodeName | None = None,
    ) -> None:
        self._nodes = nodes
        self._node_names = tuple(nodes.by_name) if only is None else (only,)
        self._spans = self._of_these_nodes(spans)
        self._faults_file = faults_file
        self._signature: _Signature | None = None
        self._injected_spans: tuple[FaultSpan, ...] = ()
        self._started_s: float | None = None
        self._removed: Mapping[NodeName, frozenset[DeviceID]] = {}

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes of the fleet, or the one that this agent stands for."""
        return self._node_names

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        """The drivers of the devices of its nodes."""
        nodes = (self._nodes.by_name.get(name) for name in self._node_names)
        drivers = {spec.driver for node in nodes if node for spec in node.shape.devices}
        return tuple(DriverName(driver) for driver in sorted(drivers))

    async def discover(self, node: NodeName) -> NodeDevices:
        """Make the devices of a node, without those that a fault removed.

        Raises:
            SourceError: the node is none of these.
        """
        if node not in self._nodes.by_name:
            if node in self._node_names:
                return NodeDevices(node=node)
            raise SourceError("simulated", f"no node is named {node!r}")
        devices = self._nodes.make_devices(node)
        removed = self._removed.get(node)
        return devices if removed is None else _remove_devices(devices, removed)

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Give an environment variable that names the device.

        Raises:
            SourceError: no node of ours has it.
        """
        for node in self._node_names:
            if node in self._nodes.by_name and device in self._nodes.list_device_ids(
                node
            ):
                return name_device(device)
        raise SourceError("simulated", f"{device} is not here")

    async def describe(self, device: DeviceID) -> DeviceDescription:  # noqa: ARG002
        """Return nothing: there is no hardware."""
        return DeviceDescription()

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:  # noqa: ARG002
        """Return None: there is nothing to set up."""
        return None

    async def read(self, now_s: float) -> Readings:
        """Return which faults are there now, and read the faults file if it changed."""
        if self._started_s is None:
            self._started_s = now_s
        elapsed_s = now_s - self._started_s
        self._reread_faults_file(elapsed_s)
        state = find_faults((*self._spans, *self._injected_spans), elapsed_s)
        changed = frozenset(
            node
            for node in self._removed.keys() | state.removed.keys()
            if self._removed.get(node) != state.removed.get(node)
        )
        self._removed = state.removed
        return Readings(symptoms=state.readings, changed=changed, away=state.away)

    def _of_these_nodes(self, spans: tuple[FaultSpan, ...]) -> tuple[FaultSpan, ...]:
        names = frozenset(self._node_names)
        return tuple(span for span in spans if span.node in names)

    def _reread_faults_file(self, elapsed_s: float) -> None:
        if self._faults_file is None:
            return
        signature = _read_signature(self._faults_file)
        if signature == self._signature:
            return
        self._signature = signature
        file = str(self._faults_file)
        try:
            text = "" if signature is None else read_text(self._faults_file)
            spans = plan_faults(read_faults(text, file), self._nodes, file)
        except SettingsError as error:
            log.warning(
                "faults.refused", file=error.file, field=error.field, rule=error.rule
            )
            return
        self._injected_spans = tuple(
            _shift_span(span, elapsed_s) for span in self._of_these_nodes(spans)
        )
        log.info("faults.read", file=file, fault_count=len(self._injected_spans))


def _read_signature(file: Path) -> _Signature | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _shift_span(span: FaultSpan, shift_s: float) -> FaultSpan:
    return structs.replace(
        span, start_s=span.start_s + shift_s, end_s=span.end_s + shift_s
    )


def _remove_devices(devices: NodeDevices, removed: frozenset[DeviceID]) -> NodeDevices:
    names = {(device.driver, device.pool, device.device) for device in removed}
    return structs.replace(
        devices,
        pools=tuple(
            structs.replace(
                pool,
                devices=tuple(
                    device
                    for device in pool.devices
                    if (pool.driver, pool.name, device.name) not in names
                ),
            )
            for pool in devices.pools
        ),
    )
