"""The source `sysfs`: PCI accelerators, NICs and NVMe disks as the kernel shows them.

Looks at the list of devices and at their states with every reading, at counters and at
everything else now and then, or when the kernel says that something happened. All of it
in a thread: a file of a sick device may answer late.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from contracts.device import ResourcePool
from contracts.ids import DeviceID, NodeName
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.health import Reading, Symptom
from nodeagent.inventory import NodeDevices
from nodeagent.schedule import is_due
from nodeagent.sources.rises import Rise
from nodeagent.sources.source import DeviceDescription, Readings
from nodeagent.sources.sysfs.addresses import find_network
from nodeagent.sources.sysfs.container import find_refusal, make_edits
from nodeagent.sources.sysfs.description import make_description
from nodeagent.sources.sysfs.folder import ReadableFolder, TreeError
from nodeagent.sources.sysfs.functions import Interface
from nodeagent.sources.sysfs.hotplug import HotPlug, open_hotplug
from nodeagent.sources.sysfs.offers import FoundDevice, make_device
from nodeagent.sources.sysfs.pci import list_addresses
from nodeagent.sources.sysfs.probes import (
    CounterProbe,
    StateProbe,
    count,
    judge_counter,
    judge_state,
    list_counter_probes,
    list_state_probes,
)
from nodeagent.sources.sysfs.scan import Scan, find_device, read_names, read_use, scan
from nodeagent.sources.sysfs.selection import PciKind, kind_of
from nodeagent.sources.sysfs.spec import SysfsSpec
from nodeagent.sources.sysfs.tree import Tree
from nodeagent.sources.threaded import ThreadedSource
from runtime.log import get_logger

log = get_logger(__name__)

_SOURCE = "sysfs"
_MIN_RESCAN_S = 1.0
"""Least time between two scans because of events."""


@asynccontextmanager
async def open_sysfs(spec: SysfsSpec, node: NodeName) -> AsyncIterator[SysfsSource]:
    """Open a source of the devices in a tree; only /sys itself tells what happens."""
    tree = Tree(Path(spec.root))
    hotplug = open_hotplug() if _is_live(tree) else HotPlug(None)
    source = SysfsSource(spec, node, tree, hotplug)
    try:
        yield source
    finally:
        source.close()


def _is_live(tree: Tree) -> bool:
    """True if the tree is that of the running kernel, wherever it is mounted."""
    try:
        ours = Tree(Path("/sys")).folder("kernel")
        return tree.folder("kernel").identity == ours.identity
    except TreeError:
        return False


class _Watched(Struct, frozen=True):
    """A device and the files that say how it is."""

    device: DeviceID
    states: tuple[tuple[StateProbe, ReadableFolder], ...]
    counters: tuple[tuple[CounterProbe, ReadableFolder], ...]


class SysfsSource(ThreadedSource):
    """PCI devices of one node: those that are selected and not in use by the node."""

    def __init__(
        self, spec: SysfsSpec, node: NodeName, tree: Tree, hotplug: HotPlug
    ) -> None:
        super().__init__(_SOURCE, spec, node)
        self._spec = spec
        self._tree = tree
        self._hotplug = hotplug
        self._addresses: tuple[str, ...] = ()
        self._scan: Scan | None = None
        self._watched: tuple[_Watched, ...] = ()
        self._counted: dict[tuple[DeviceID, CounterProbe], Rise] = {}
        self._is_suspect = True
        """Something happened since the last scan."""
        self._scanned_s: float | None = None
        self._counted_s: float | None = None
        self._interfaces: dict[DeviceID, Interface] = {}
        """The first of each described device, as /sys showed it last: it does not show
        one that a pod was given."""

    def _list_devices(self) -> NodeDevices:
        found = self._scan or self._rescan()
        names = read_names(
            self._spec, [device.pci for device in found.devices.values()]
        )
        pool = ResourcePool(
            driver=self._driver,
            name=self._pool,
            devices=tuple(
                make_device(device, names)
                for _, device in sorted(found.devices.items())
            ),
        )
        return NodeDevices(node=self._node, pools=(pool,))

    def _read_devices(self, now_s: float) -> Readings:
        changed = False
        if self._must_rescan(now_s):
            before = self._scan
            found = self._rescan()
            changed = before is None or found.devices != before.devices
            self._scanned_s, self._is_suspect = now_s, False
        if is_due(self._counted_s, self._spec.counters_seconds, now_s):
            self._read_counters(now_s)
            self._counted_s = now_s
        readings = tuple(
            reading
            for watched in self._watched
            for reading in self._judge_device(watched, now_s)
        )
        return Readings(
            symptoms={self._node: readings} if readings else {},
            changed=frozenset({self._node} if changed else ()),
        )

    def _must_rescan(self, now_s: float) -> bool:
        self._is_suspect |= self._hotplug.happened()
        try:
            addresses = list_addresses(self._tree)
        except TreeError as error:
            raise SourceError(_SOURCE, str(error)) from error
        every_s = _MIN_RESCAN_S if self._is_suspect else self._spec.rescan_seconds
        if addresses != self._addresses:
            return True
        return is_due(self._scanned_s, every_s, now_s)

    def _rescan(self) -> Scan:
        before = self._scan or Scan()
        try:
            self._addresses = list_addresses(self._tree)
            found = scan(self._tree, self._spec, before)
        except TreeError as error:
            raise SourceError(_SOURCE, str(error)) from error
        for address, reason in found.withheld.items():
            if before.withheld.get(address) != reason:
                log.info("device.withheld", address=address, reason=reason)
        if found != self._scan:
            self._scan = found
            self._watched = tuple(self._list_watched(found))
        return found

    def _list_watched(self, found: Scan) -> Iterator[_Watched]:
        for name, device in found.devices.items():
            path = f"bus/pci/devices/{device.pci.address}"
            states = list_state_probes(device.functions, self._spec.link_down)
            counters = list_counter_probes(path, device.ras_files)
            yield _Watched(
                self._identify(name),
                tuple(
                    (probe, folder)
                    for probe in states
                    if (folder := self._find_folder(probe.folder)) is not None
                ),
                tuple(
                    (probe, folder)
                    for probe in counters
                    if (folder := self._find_folder(probe.folder)) is not None
                    and folder.has(probe.file)
                ),
            )

    def _find_folder(self, path: str) -> ReadableFolder | None:
        try:
            return self._tree.folder(path)
        except TreeError:
            return None

    def _read_counters(self, now_s: float) -> None:
        counted: dict[tuple[DeviceID, CounterProbe], Rise] = {}
        for watched in self._watched:
            for probe, folder in watched.counters:
                key = (watched.device, probe)
                text = folder.find(probe.file)
                after = count(probe, self._counted.get(key), text, now_s)
                if after is not None:
                    counted[key] = after
        self._counted = counted

    def _judge_device(self, watched: _Watched, now_s: float) -> Iterator[Reading]:
        device = watched.device
        use = self._scan.used.get(device.device) if self._scan else None
        if use:
            yield Reading(device, Symptom.BAD, use, "InUse")
        for probe, folder in watched.states:
            try:
                fault = judge_state(probe, folder.read(probe.file))
            except TreeError as error:
                self._is_suspect = True  # it may be gone
                yield Reading(device, Symptom.SILENT, str(error), "Unreadable")
                continue
            if fault is not None:
                yield Reading(device, Symptom.BAD, fault.message, fault.reason)
        for counter, _ in watched.counters:
            counted = self._counted.get((device, counter))
            if counted is None:
                continue
            fault = judge_counter(counter, counted, self._spec.hold_seconds, now_s)
            if fault is not None:
                yield Reading(device, Symptom.BAD, fault.message, fault.reason)

    def _make_edits(self, device: DeviceID) -> ContainerEdits:
        now = self._find_now(device)
        refusal = find_refusal(now) or read_use(self._spec, now)
        if refusal:
            raise SourceError(_SOURCE, f"{device}: {refusal}")
        return make_edits(device, now)

    def _describe_device(self, device: DeviceID) -> DeviceDescription:
        now = self._find_now(device)
        if now.functions.interfaces:
            self._interfaces[device] = now.functions.interfaces[0]
        known = self._interfaces.get(device)
        is_nic = known is not None or kind_of(now.pci) is PciKind.NIC
        network = find_network(now.pci.address, known) if is_nic else None
        return make_description(now, network)

    def _find_now(self, device: DeviceID) -> FoundDevice:
        found = self._scan or self._rescan()
        known = found.devices.get(device.device)
        if known is None or device != self._identify(device.device):
            raise SourceError(_SOURCE, f"{device} is not here")
        try:
            now = find_device(self._tree, self._spec, known.pci.address)
        except TreeError as error:
            raise SourceError(_SOURCE, f"{device}: {error}") from error
        if now is None:
            raise SourceError(_SOURCE, f"{device} is not what it was")
        return now
