"""Nodes made of a fleet file."""

from __future__ import annotations

from contracts import names
from contracts.ids import NodeName
from nodeagent.sources.expand import Nodes, expand
from nodeagent.sources.fleet import read_fleet

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
topology:
- {label: rack, value: "r{index:02}", nodes: 2}
- {label: power, value: "p{index}", groups: 2}
nodes:
- shape: plain
  count: 1
- shape: gpu
  count: 4
  name: "{shape}{index:03}-{position}"
  labels: {slot: "s{index}", rack: mine}
  devices:
  - driver: gpu.example.com
    count: 6
    name: "gpu-{index}"
    pool: "{node}-pool"
    uuidPrefix: GPU
    attributes: {slot: "{numa}-{root:02x}-{rail}", busy: false, lanes: 16}
    capacity: {memory: 80Gi}
    numaNodes: 2
    pcieRoots: 3
    rails: 6
"""


def nodes() -> Nodes:
    return expand(read_fleet(FLEET, "f"), "f")


def test_names_follow_their_patterns() -> None:
    """Index and position are filled in, padded as the pattern says."""
    assert list(nodes().by_name) == [
        "plain-0",
        *(f"gpu00{i}-{i + 1}" for i in range(4)),
    ]


def test_nodes_without_devices_have_no_pools() -> None:
    """A node for CPUs alone announces nothing but itself."""
    assert nodes().make_devices(NodeName("plain-0")).pools == ()


def test_topology_groups_neighbours_or_deals_in_turn() -> None:
    """`nodes` makes blocks of neighbours, `groups` deals one by one."""
    labels = [nodes().make_devices(node).labels for node in nodes().by_name]
    assert [item["power"] for item in labels] == ["p0", "p1", "p0", "p1", "p0"]
    assert labels[0]["rack"] == "r00"


def test_a_shapes_own_label_wins_over_topology() -> None:
    """What a shape says of itself is more special."""
    labels = nodes().make_devices(NodeName("gpu002-3")).labels
    assert labels == {"rack": "mine", "power": "p1", "slot": "s2"}


def test_devices_are_split_into_groups_in_order() -> None:
    """Groups are of equal size as far as they can be."""
    (pool,) = nodes().make_devices(NodeName("gpu000-1")).pools
    slots = [device.attributes["slot"].string_value for device in pool.devices]
    assert slots == ["0-00-0", "0-00-1", "0-01-2", "1-01-3", "1-02-4", "1-02-5"]
    roots = [
        device.attributes["resource.kubernetes.io/pcieRoot"].string_value
        for device in pool.devices
    ]
    assert roots == [f"pci0000:0{index // 2}" for index in range(6)]


def test_every_simulated_device_says_so() -> None:
    """Nobody takes it for a real one, and no fleet file can deny it."""
    made = nodes()
    assert all(
        device.attributes[names.SIMULATED].bool_value is True
        for node in made.by_name
        for pool in made.make_devices(node).pools
        for device in pool.devices
    )


def test_uuids_are_unique_and_the_same_in_every_run() -> None:
    """They follow from the names, so a restart changes none."""

    def uuids() -> list[str | None]:
        made = nodes()
        return [
            device.attributes["uuid"].string_value
            for node in made.by_name
            for pool in made.make_devices(node).pools
            for device in pool.devices
        ]

    assert uuids() == uuids()
    assert len(set(uuids())) == 24
    assert all((uuid or "").startswith("GPU-") for uuid in uuids())


def test_ids_agree_with_the_devices_made() -> None:
    """Ids are listed without making devices, and are the same ids."""
    made = nodes()
    for node in made.by_name:
        assert made.list_device_ids(node) == made.make_devices(node).device_ids
