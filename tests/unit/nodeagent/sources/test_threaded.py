"""A source that reads in a thread: of one node, and it ends with what runs."""

from __future__ import annotations

import threading

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.inventory import NodeDevices
from nodeagent.sources.source import DeviceDescription, Readings
from nodeagent.sources.source_spec import DeviceSourceSpec
from nodeagent.sources.threaded import ThreadedSource

NODE = NodeName("node-1")
DEVICE = DeviceID(
    DriverName("gpu.example.com"), PoolName("node-1"), DeviceName("gpu-0")
)


class NamedThreads(ThreadedSource):
    """Notes the threads in which it is called."""

    def __init__(self) -> None:
        spec = DeviceSourceSpec(name="a", driver=DEVICE.driver)
        super().__init__("played", spec, NODE)
        self.threads = set[str]()

    def _note_thread(self) -> None:
        self.threads.add(threading.current_thread().name)

    def _list_devices(self) -> NodeDevices:
        self._note_thread()
        return NodeDevices(node=self._node, pools=())

    def _read_devices(self, now_s: float) -> Readings:  # noqa: ARG002
        self._note_thread()
        return Readings()

    def _make_edits(self, device: DeviceID) -> ContainerEdits:  # noqa: ARG002
        self._note_thread()
        return ContainerEdits()

    def _describe_device(self, device: DeviceID) -> DeviceDescription:
        self._note_thread()
        return DeviceDescription(data={"name": device.device})


async def test_everything_is_read_in_one_thread() -> None:
    source = NamedThreads()
    try:
        assert (await source.discover(NODE)).node == NODE
        await source.read(0.0)
        await source.edits(DEVICE)
        assert (await source.describe(DEVICE)).data == {"name": "gpu-0"}
    finally:
        source.close()
    assert source.threads == {"played_0"}
    assert (source.nodes, source.drivers) == ((NODE,), (DEVICE.driver,))
    assert source.find_hooks(DEVICE) is None


async def test_other_nodes_are_unknown() -> None:
    source = NamedThreads()
    with pytest.raises(SourceError, match="no node is named 'node-2'"):
        await source.discover(NodeName("node-2"))
    source.close()
