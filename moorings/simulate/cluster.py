"""The cluster of a simulation: a fleet file, announced as node agents would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from contracts.messages import DevicesAnnounced
from moorings.local.fleets import make_classes
from moorings.simulate.job import CLUSTER
from nodeagent.errors import SettingsError
from nodeagent.inventory import NodeDevices
from nodeagent.sources.expand import expand
from nodeagent.sources.fleet import read_fleet
from solver.snapshot.snapshot import Snapshot, apply, observe


class SimulatedCluster(Struct, frozen=True, kw_only=True):
    """An empty cluster, and which of its devices the jobs of a trace want."""

    snapshot: Snapshot
    device_class: str
    nodes: int
    devices: int
    node_devices: int
    """Devices of the largest node."""


def read_cluster(file: Path) -> SimulatedCluster:
    """Read a fleet file; jobs want devices of the driver that it names first.

    Raises:
        SettingsError: the file is no fleet, or has no devices.
    """
    fleet = read_fleet(file.read_text(encoding="utf-8"), str(file))
    nodes = expand(fleet, str(file))
    snapshot = Snapshot()
    for each in make_classes(file):
        snapshot = observe(snapshot, each.metadata.name, each)
    drivers = [spec.driver for shape in fleet.nodes for spec in shape.devices]
    if not drivers:
        raise SettingsError(str(file), "nodes", "have no devices")
    counts = Counter[int]()
    for name in nodes.by_name:
        made = nodes.make_devices(name)
        snapshot = apply(snapshot, _announce(made))
        counts[_count(made, drivers[:1])] += 1
    return SimulatedCluster(
        snapshot=snapshot,
        device_class=drivers[0],
        nodes=len(nodes.by_name),
        devices=sum(size * count for size, count in counts.items()),
        node_devices=max(counts),
    )


def _announce(node: NodeDevices) -> DevicesAnnounced:
    return DevicesAnnounced(
        cluster=CLUSTER,
        node=node.node,
        pools=node.pools,
        labels=dict(node.labels),
        resources=dict(node.resources),
    )


def _count(node: NodeDevices, drivers: Iterable[str]) -> int:
    return sum(len(pool.devices) for pool in node.pools if pool.driver in drivers)
