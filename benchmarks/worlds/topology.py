"""Gangs with rules across their pods, on racks and blocks: worlds by construction.

Nodes with 8 GPUs, 16 to a rack, 16 racks to a block; for `aligned` each GPU has a NIC
on its PCIe root. A world says what all gangs ask for and what first fit finds of it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.worlds.objects import (
    CLUSTER,
    PCIE_ROOT,
    announced,
    member_claim,
    observed_class,
    request,
    submission,
    text,
)
from contracts.codec import to_builtins
from contracts.device import Device, DeviceAttribute, ResourcePool
from contracts.gang import Member
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import DeviceName, DriverName, FullyQualifiedName, NodeName, PoolName
from contracts.messages import DevicesAnnounced, ObjectObserved, SubmitGang
from contracts.meta import ObjectMeta
from contracts.workload import Node
from solver.snapshot.snapshot import Snapshot, apply

RACK, BLOCK, ZONE = "example.com/rack", "example.com/block", "example.com/zone"
GPU, NIC = "gpu.example.com", "nic.example.com"
RAIL = "example.com/rail"
DEVICES, IN_RACK, IN_BLOCK = 8, 16, 256


class World(Struct, frozen=True):
    """A cluster, the gangs that wait, and the weight that first fit takes in."""

    snapshot: Snapshot
    gangs: tuple[SubmitGang, ...]
    first_fit: int


def groups(pods: int) -> World:
    """Ask for one gang on as many nodes: three levels, each Required, groups of 8."""
    rules = (
        GangTopology(key=ZONE),
        GangTopology(key=BLOCK, group_size=64),
        GangTopology(key=RACK, group_size=8),
    )
    return _world(pods, [_gang(1, pods, DEVICES, rules)])


def idle(nodes: int) -> World:
    """Ask for one gang of 8 nodes in a rack of an idle cluster."""
    return _world(nodes, [in_rack(1)])


def in_rack(age: int) -> SubmitGang:
    """Ask for 8 nodes in one rack."""
    return _gang(age, 8, DEVICES, (GangTopology(key=RACK),))


def scarce(nodes: int, seed: int, sizes: Sequence[int] = (1, 2, 4, 8)) -> World:
    """Ask for 1.3 times what there is by one gang for five nodes, each of own worth.

    Half of the gangs in one rack or block. First fit takes who comes first. `sizes`:
    devices that a pod may have.
    """
    draw, asked = random.Random(seed), list[tuple[int, int, str]]()
    for number in range(nodes // 5):
        devices = draw.choice(sizes)
        key = draw.choice((RACK, RACK, BLOCK)) if number % 2 else ""
        most = IN_RACK * (DEVICES // devices) * 3 // 4
        asked.append((draw.randint(2, most if key == RACK else 32), devices, key))
    # As large as they must be, all together, to ask for so much.
    factor = 1.3 * nodes * DEVICES / sum(pods * each for pods, each, _ in asked)
    gangs = list[SubmitGang]()
    for age, (least, devices, key) in enumerate(asked, start=1):
        most = IN_RACK * (DEVICES // devices) if key == RACK else nodes
        pods = min(most, max(1, round(factor * least)))
        rules = (GangTopology(key=key),) if key else ()
        worth = round(pods * devices * draw.uniform(0.5, 2.0))
        gangs.append(_gang(age, pods, devices, rules, weight=worth))
    return _world(nodes, gangs)


def uneven(nodes: int, seed: int) -> World:
    """Ask as `scarce` does, also for 3 and 6 devices, which leave parts of nodes."""
    return scarce(nodes, seed, (1, 2, 3, 4, 6, 8))


def filled(nodes: int, seed: int) -> World:
    """Cut racks into gangs that must be in one: all of them fit, and fill 95 %.

    First fit leaves pieces of racks that no gang is small enough for.
    """
    draw, gangs, left = random.Random(seed), list[SubmitGang](), 0.0
    for _ in range(nodes // IN_RACK):
        left += 0.95 * IN_RACK
        pieces = _cut(draw, round(left))
        left -= sum(pieces)
        for pods in pieces:
            rules = (GangTopology(key=RACK),)
            gangs.append(_gang(len(gangs) + 1, pods, DEVICES, rules))
    draw.shuffle(gangs)
    return _world(nodes, gangs)


def rails(nodes: int, seed: int) -> World:
    """Cut rails into gangs that must be on one: all of them fit, and fill 95 %.

    Device d of each node is on rail d; a pod has one device.
    """
    draw, gangs = random.Random(seed), list[SubmitGang]()
    same_rail = GangConstraint(match_attribute=FullyQualifiedName(RAIL))
    for _ in range(DEVICES):
        left, parts = round(0.95 * nodes), draw.randint(3, 5)
        for others in range(parts - 1, -1, -1):
            pods = round(left / (others + 1) * draw.uniform(0.8, 1.2))
            pods = pods if others else left
            left -= pods
            asked = _gang(len(gangs) + 1, pods, 1, ())
            spec = replace(asked.gang.spec, constraints=(same_rail,))
            gangs.append(replace(asked, gang=replace(asked.gang, spec=spec)))
    draw.shuffle(gangs)
    return replace(_world(nodes, gangs), first_fit=_first_rails(nodes, gangs))


def aligned(pods: int) -> World:
    """Ask for pods with a GPU and a NIC, in two claims, on one PCIe root."""
    claims = (
        member_claim("gpu", request("gpu", GPU)),
        member_claim("nic", request("nic", NIC)),
    )
    wanted = Member(name="worker", count=pods, claims=claims)
    same_root = GangConstraint(
        match_attribute=FullyQualifiedName(PCIE_ROOT), scope="Pod"
    )
    asked = submission(1, wanted)
    spec = replace(asked.gang.spec, constraints=(same_root,))
    asked = replace(asked, gang=replace(asked.gang, spec=spec))
    return _world(pods, [asked], nics=True)


def _cut(draw: random.Random, nodes: int) -> list[int]:
    """Cut so many nodes of a rack into pieces of 5 to 9."""
    pieces = list[int]()
    while left := nodes - sum(pieces):
        sizes = [size for size in range(5, 10) if size == left or left - size >= 5]
        pieces.append(draw.choice(sizes))
    return pieces


def _gang(
    age: int,
    pods: int,
    devices: int,
    topology: tuple[GangTopology, ...],
    weight: int | None = None,
) -> SubmitGang:
    claims = (member_claim("gpus", request("gpu", GPU, devices)),)
    asked = submission(age, Member(name="worker", count=pods, claims=claims))
    spec = replace(asked.gang.spec, topology=topology, weight=weight)
    return replace(asked, gang=replace(asked.gang, spec=spec))


def _world(nodes: int, gangs: Sequence[SubmitGang], *, nics: bool = False) -> World:
    snapshot = Snapshot()
    for driver in (GPU, NIC):
        message = observed_class(driver, f'device.driver == "{driver}"')
        snapshot = apply(snapshot, message)
    for inventory, node in list_nodes(nodes, nics=nics):
        snapshot = apply(apply(snapshot, inventory), node)
    return World(snapshot, tuple(gangs), _first_fit(nodes, gangs))


def list_nodes(
    nodes: int, *, nics: bool = False
) -> Iterator[tuple[DevicesAnnounced, ObjectObserved]]:
    """Go through nodes: their devices, and their Node with its labels."""
    for number in range(nodes):
        name = NodeName(f"node-{number:05}")
        pools = [_pool(name, driver) for driver in (GPU, NIC)[: 1 + nics]]
        yield announced(name, *pools), _observed_node(name, number)


def _pool(node: NodeName, driver: str) -> ResourcePool:
    content = tuple(
        Device(
            name=DeviceName(f"d{number}"),
            attributes={
                PCIE_ROOT: text(f"pci{number}"),
                RAIL: DeviceAttribute(int_value=number),
            },
        )
        for number in range(DEVICES)
    )
    return ResourcePool(
        driver=DriverName(driver),
        name=PoolName(node),
        generation=1,
        devices=content,
    )


def _observed_node(name: NodeName, number: int) -> ObjectObserved:
    labels = {
        RACK: f"r{number // IN_RACK:04}",
        BLOCK: f"b{number // IN_BLOCK:03}",
        ZONE: "z",
    }
    node = Node(metadata=ObjectMeta(name=name, labels=labels))
    raw = {"apiVersion": "v1", "kind": "Node", **to_builtins(node)}
    return ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)


def _first_fit(nodes: int, gangs: Sequence[SubmitGang]) -> int:
    """Give each gang, oldest first, the first domain and nodes that hold it."""
    free, given = [DEVICES] * nodes, 0
    for spec in (message.gang.spec for message in gangs):
        (member,) = spec.members
        first = member.claims[0].spec
        exactly = first.devices.requests[0].exactly if first is not None else None
        devices = exactly.count if exactly is not None else 1
        sizes = {RACK: IN_RACK, BLOCK: IN_BLOCK}
        width = min([nodes, *(sizes.get(r.key, nodes) for r in spec.topology)])
        by_domain = defaultdict[int, list[int]](list)
        for node, left in enumerate(free):
            by_domain[node // width].extend([node] * (left // devices))
        places = next((p for p in by_domain.values() if len(p) >= member.count), [])
        asked = member.count * devices * len(member.claims)
        given += (asked if spec.weight is None else spec.weight) if places else 0
        for node in places[: member.count]:
            free[node] -= devices
    return given


def _first_rails(nodes: int, gangs: Sequence[SubmitGang]) -> int:
    """Give each gang of pods of one device, oldest first, the first rail with room."""
    free, given = [nodes] * DEVICES, 0
    for (member,) in (message.gang.spec.members for message in gangs):
        rail = next((r for r, left in enumerate(free) if left >= member.count), None)
        if rail is not None:
            free[rail] -= member.count
            given += member.count
    return given
