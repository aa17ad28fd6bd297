"""Each change alone: what of a cluster is otherwise, and what is not."""

from __future__ import annotations

import pytest

from contracts.ids import NodeName
from contracts.quantity import Quantity
from moorings.errors import UnknownNameError
from moorings.what_if.changes import (
    HOSTNAME,
    Changes,
    change_cluster,
    end_gangs,
    find_gang,
)
from solver.snapshot.parts import NodePart, PoolPart
from solver.snapshot.snapshot import Snapshot
from tests.builders.problems import CLUSTER
from tests.builders.queues import cluster_queue, with_queues
from tests.builders.timeline import World


def count_devices(snapshot: Snapshot) -> dict[str, int]:
    pages = snapshot.inventory.pages
    parts = [part for part in pages.values() if isinstance(part, PoolPart)]
    return {part.node: len(part.devices) for part in parts}


def test_added_nodes_are_like_one_and_free() -> None:
    world = World(1, 4, rack=1)
    world.start("runs", gpus=4, cpu=2)
    changes = Changes(add_nodes={NodeName("n-0"): 2})
    changed = change_cluster(world.snapshot, changes, CLUSTER)
    added = ["n-0-what-if-1", "n-0-what-if-2"]
    assert count_devices(changed) == dict.fromkeys(["n-0", *added], 4)
    parts = changed.inventory.pages.values()
    nodes = {part.name: part for part in parts if isinstance(part, NodePart)}
    labels = {**nodes[NodeName("n-0")].labels, HOSTNAME: added[0]}
    assert nodes[NodeName(added[0])].labels == labels
    holders = changed.inventory.holders
    assert [key for key, uses in holders.items() if uses] == [
        key for key, uses in world.snapshot.inventory.holders.items() if uses
    ]


def test_a_node_goes_with_its_devices() -> None:
    world = World(2, 4)
    changes = Changes(without_nodes=(NodeName("n-1"),))
    changed = change_cluster(world.snapshot, changes, CLUSTER)
    assert count_devices(changed) == {"n-0": 4}
    assert sorted(changed.inventory.nodes) == ["n-0"]


def test_one_quota_of_several_is_named_with_its_flavor() -> None:
    quotas = {"old": {"gpu": 4}, "new": {"gpu": 8, "nvidia.com/gpu": 2}}
    snapshot = with_queues(World(1).snapshot, cluster_queue("q", quotas))

    def set_quota(name: str) -> dict[tuple[str, str], int]:
        changes = Changes(quotas={name: Quantity.parse("5")})
        changed = change_cluster(snapshot, changes, CLUSTER)
        queue = changed.queues.cluster_queues.get("q")
        assert queue is not None
        return {
            (flavor.name, each.name): each.nominal_quota.nano // 10**9
            for group in queue.spec.resource_groups
            for flavor in group.flavors
            for each in flavor.resources
        }

    assert set_quota("q/nvidia.com/gpu")["new", "nvidia.com/gpu"] == 5
    assert set_quota("q/new/gpu") == {
        ("old", "gpu"): 4,
        ("new", "gpu"): 5,
        ("new", "nvidia.com/gpu"): 2,
    }
    with pytest.raises(UnknownNameError, match="single quota"):
        set_quota("q/gpu")


def test_a_gang_is_found_by_any_of_its_names() -> None:
    world = World(2)
    record = world.start("runs")
    for name in ("runs", f"{record.namespace}/runs", record.uid):
        assert find_gang([record], name) is record
        assert not end_gangs(world.snapshot, (name,)).placed.get(record.key)
    with pytest.raises(UnknownNameError, match="nobody"):
        find_gang([record], "nobody")
