"""The source `nvml`: NVIDIA's GPUs and their MIG partitions.

Where the library is not, there are no devices, and it is looked for again now and
then; where it was and is gone, all devices are silent. NVML is called in one thread, as
a sick GPU may answer late, and events are waited for in another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from contracts.device import CounterSet, Device, ResourcePool
from contracts.ids import DeviceID, DeviceName, NodeName
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SettingsError, SourceError
from nodeagent.health import Reading, Symptom
from nodeagent.inventory import NodeDevices
from nodeagent.schedule import is_due
from nodeagent.sources.nvml.calls import LIBRARY_GONE, Nvml, NvmlError
from nodeagent.sources.nvml.container import (
    list_nodes,
    make_edits,
    read_partition_nodes,
)
from nodeagent.sources.nvml.events import Events
from nodeagent.sources.nvml.gpus import (
    WHOLE,
    Driver,
    Gpu,
    MigDevice,
    read_driver,
    read_gpus,
)
from nodeagent.sources.nvml.health import GpuFault, GpuHealth, judge_event, read_health
from nodeagent.sources.nvml.library import open_library
from nodeagent.sources.nvml.offers import (
    Locality,
    make_counters,
    make_gpu,
    make_partition,
    name_gpu,
    name_partition,
)
from nodeagent.sources.nvml.recording import Player, read_recording
from nodeagent.sources.nvml.spec import NvmlSpec
from nodeagent.sources.settings import read_text
from nodeagent.sources.source import DeviceDescription, Readings
from nodeagent.sources.sysfs.folder import TreeError
from nodeagent.sources.sysfs.pci import open_device, read_pci_device
from nodeagent.sources.sysfs.tree import Tree
from nodeagent.sources.threaded import ThreadedSource
from runtime.log import get_logger

log = get_logger(__name__)

T = TypeVar("T")

_SOURCE = "nvml"


class _Offered(Struct, frozen=True):
    """A device that is offered: a GPU, or a partition of one."""

    gpu: Gpu
    partition: MigDevice | None = None

    @property
    def name(self) -> DeviceName:
        """Its name in the pool."""
        if self.partition is None:
            return name_gpu(self.gpu)
        return name_partition(self.gpu, self.partition)

    def is_hit(self, fault: GpuFault) -> bool:
        """True if a fault of its GPU affects this device."""
        instances = {WHOLE, self.partition.gpu_instance if self.partition else WHOLE}
        return self.partition is None or fault.gpu_instance in instances


class _Look(Struct, frozen=True, kw_only=True):
    """The result of reading all GPUs once."""

    driver: Driver
    gpus: tuple[Gpu, ...] = ()
    offered: tuple[_Offered, ...] = ()


@asynccontextmanager
async def open_nvml(
    spec: NvmlSpec, node: NodeName, folder: Path
) -> AsyncIterator[NvmlSource]:
    """Open a source of the GPUs of this machine, or of a record.

    Raises:
        SettingsError: the record cannot be read.
    """
    open_nvml_calls: Callable[[], Nvml] = open_library
    if spec.recording:
        file = folder / spec.recording
        try:
            recording = read_recording(read_text(file))
        except ValueError as error:
            raise SettingsError(str(file), "", f"is not a record: {error}") from error
        player = Player(recording)
        open_nvml_calls = lambda: player  # noqa: E731 # one record, however often
    source = NvmlSource(spec, node, open_nvml_calls)
    try:
        yield source
    finally:
        source.close()


class NvmlSource(ThreadedSource):
    """NVIDIA's GPUs of one node: those that are not partitioned, and all partitions."""

    def __init__(
        self, spec: NvmlSpec, node: NodeName, open_calls: Callable[[], Nvml]
    ) -> None:
        super().__init__(_SOURCE, spec, node)
        self._spec = spec
        self._open_calls = open_calls
        self._sysfs, self._proc = Tree(Path(spec.root)), Tree(Path(spec.proc))
        self._nvml: Nvml | None = None
        self._events: Events | None = None
        self._absence = ""
        """Why there is no library, as last logged."""
        self._look: _Look | None = None
        self._health: dict[str, GpuHealth] = {}
        """By UUID of the GPU."""
        self._held: dict[str, dict[tuple[str, int], GpuFault]] = {}
        """Faults from events, by UUID, reason and instance."""
        self._looked_s: float | None = None
        self._judged_s: float | None = None

    def close(self) -> None:
        """Stop waiting for events, and begin nothing more."""
        if self._events is not None:
            self._events.close()
        super().close()

    async def _run(self, function: Callable[[], T]) -> T:
        try:
            return await super()._run(function)
        except NvmlError as error:
            raise SourceError(_SOURCE, str(error)) from error

    def _connect_library(self) -> Nvml | None:
        """Open the library, if it is not; None: it never was there."""
        if self._nvml is not None:
            return self._nvml
        try:
            nvml = self._open_calls()
            gpus, _ = read_gpus(nvml)
            events = Events(nvml)
            events.listen(gpus)
        except NvmlError as error:
            if self._look is not None and self._look.gpus:
                raise
            if self._absence != str(error):
                log.info("gpus.absent", reason=str(error))
            self._absence = str(error)
            return None
        self._nvml, self._events = nvml, events
        return nvml

    def _disconnect_library(self) -> None:
        if self._events is not None:
            self._events.close()
        self._nvml = self._events = None

    def _look_again(self) -> _Look:
        nvml = self._connect_library()
        if nvml is None:
            self._look = _Look(driver=Driver("", 0))
            return self._look
        try:
            gpus, unread = read_gpus(nvml)
            look = _Look(
                driver=read_driver(nvml), gpus=gpus, offered=tuple(_list_offered(gpus))
            )
        except NvmlError as error:
            if error.code in LIBRARY_GONE:
                self._disconnect_library()
            raise
        if look != self._look:
            for reason in (*unread, *(why for gpu in gpus for why in gpu.withheld)):
                log.warning("device.withheld", reason=reason)
        self._look = look
        return look

    def _list_devices(self) -> NodeDevices:
        look = self._look or self._look_again()
        devices: list[Device] = []
        counters: list[CounterSet] = []
        for gpu in look.gpus:
            locality = self._locate_gpu(gpu)
            if not gpu.is_mig:
                devices.append(make_gpu(gpu, look.driver, locality))
            elif gpu.partitions:
                counters.append(make_counters(gpu))
            devices.extend(
                make_partition(gpu, partition, look.driver, locality)
                for partition in gpu.partitions
            )
        pool = ResourcePool(
            driver=self._driver,
            name=self._pool,
            devices=tuple(sorted(devices, key=lambda device: device.name)),
            shared_counters=tuple(counters),
        )
        return NodeDevices(node=self._node, pools=(pool,))

    def _locate_gpu(self, gpu: Gpu) -> Locality:
        try:
            pci = read_pci_device(open_device(self._sysfs, gpu.bus_id))
        except TreeError:
            return Locality()
        return Locality(pci.root, pci.numa_node)

    def _read_devices(self, now_s: float) -> Readings:
        changed = False
        is_gone = self._nvml is None and self._look is not None and self._look.gpus
        if is_gone or is_due(self._looked_s, self._spec.rescan_seconds, now_s):
            before = self._look
            changed = self._look_again() != before
            self._looked_s = now_s
        if self._events is not None:
            self._take_events(self._events, now_s)
        if is_due(self._judged_s, self._spec.health_seconds, now_s):
            self._read_health(now_s)
            self._judged_s = now_s
        readings = tuple(self._judge_devices(now_s))
        return Readings(
            symptoms={self._node: readings} if readings else {},
            changed=frozenset({self._node} if changed else ()),
        )

    def _take_events(self, events: Events, now_s: float) -> None:
        gpus = {gpu.token: gpu for gpu in self._look.gpus} if self._look else {}
        ignored = frozenset(self._spec.ignore_xids)
        for event in events.take():
            gpu = gpus.get(event.device)
            fault = judge_event(event, ignored, self._spec.hold_seconds, now_s)
            log.info(
                "gpu.event",
                gpu=gpu.uuid if gpu else event.device,
                xid=event.event_data,
                counts=fault is not None,
            )
            # An event that names no GPU that we know may be of any.
            for hit in (gpu,) if gpu else gpus.values():
                if fault is not None:
                    held = self._held.setdefault(hit.uuid, {})
                    held[fault.reason, fault.gpu_instance] = fault

    def _read_health(self, now_s: float) -> None:
        if self._nvml is None or self._look is None:
            return
        try:
            self._health = {
                gpu.uuid: read_health(
                    self._nvml,
                    gpu,
                    self._health.get(gpu.uuid, GpuHealth()),
                    self._spec.hold_seconds,
                    now_s,
                )
                for gpu in self._look.gpus
            }
        except NvmlError:
            self._disconnect_library()
            raise

    def _judge_devices(self, now_s: float) -> Iterator[Reading]:
        for offered in self._look.offered if self._look else ():
            uuid = offered.gpu.uuid
            held = self._held.get(uuid, {})
            for key, fault in list(held.items()):
                if fault.until_s is not None and now_s >= fault.until_s:
                    del held[key]
            health = self._health.get(uuid, GpuHealth())
            device = self._identify(offered.name)
            for fault in (*held.values(), *health.faults):
                if offered.is_hit(fault):
                    yield Reading(device, Symptom.BAD, fault.message, fault.reason)

    def _make_edits(self, device: DeviceID) -> ContainerEdits:
        offered = self._find_offered(device, self._look_again())
        gpu, partition = offered.gpu, offered.partition
        if partition is None:
            return make_edits(device, gpu.uuid, list_nodes(gpu))
        try:
            nodes = read_partition_nodes(self._proc, gpu, partition)
        except TreeError as error:
            raise SourceError(_SOURCE, f"{device}: {error}") from error
        return make_edits(device, partition.uuid, nodes)

    def _describe_device(self, device: DeviceID) -> DeviceDescription:
        offered = self._find_offered(device, self._look or self._look_again())
        gpu, partition = offered.gpu, offered.partition
        data: dict[str, str] = {"uuid": (partition or gpu).uuid}
        if partition is not None:
            data["parentUUID"] = gpu.uuid
        if gpu.bus_id:
            data["pciAddress"] = gpu.bus_id
        return DeviceDescription(data=data, card=gpu.uuid)

    def _find_offered(self, device: DeviceID, look: _Look) -> _Offered:
        for offered in look.offered:
            if device == self._identify(offered.name):
                return offered
        raise SourceError(_SOURCE, f"{device} is not here")


def _list_offered(gpus: tuple[Gpu, ...]) -> Iterator[_Offered]:
    for gpu in gpus:
        if not gpu.is_mig:
            yield _Offered(gpu)
        for partition in gpu.partitions:
            yield _Offered(gpu, partition)
