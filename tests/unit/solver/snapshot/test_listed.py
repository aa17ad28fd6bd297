"""Objects that come all at once are believed as they are when they come one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from contracts.claim import ResourceClaim
from contracts.device import ResourceSlice
from contracts.ids import NodeName
from contracts.kubernetes.decode import KubernetesObject
from solver.snapshot.listed import observe_all
from solver.snapshot.snapshot import Snapshot, observe
from tests.builders import (
    allocation,
    claim,
    claim_template,
    device_class,
    devices,
    node,
    node_selector,
    pod,
    quantities,
    resource_slice,
    result,
    taint,
    taint_rule,
)

Keyed = tuple[str, KubernetesObject]
NODES = [f"node-{number}" for number in range(6)]


def some_slice(random: Random, number: int) -> ResourceSlice:
    """Draw one: of a pool that others are of too, on a node or on several."""
    home = random.choice(NODES)
    spec: dict[str, Any] = random.choice(
        [{}, {}, {}, {"all_nodes": True}, {"node_selector": node_selector(a="b")}]
    )
    return resource_slice(
        *devices(random.randint(1, 3)),
        name=f"slice-{number}",
        node=home,
        pool=random.choice([home, home, "shared"]),
        generation=random.randint(1, 2),
        slice_count=random.randint(1, 2),
        **spec,
    )


def some_claim(random: Random, number: int) -> ResourceClaim:
    """Draw one that holds a device, or a share of it, or nothing."""
    fields: dict[str, Any] = random.choice(
        [
            {},
            {},
            {"admin_access": True},
            {
                "share_id": f"share-{number}",
                "consumed_capacity": quantities({"memory": random.randint(1, 9)}),
            },
        ]
    )
    held = [
        result(f"gpu-{random.randint(0, 2)}", pool=random.choice(NODES), **fields)
        for _ in range(random.randint(1, 3))
    ]
    allocated = allocation(*held) if random.random() < 0.8 else None
    return claim(name=f"claim-{number}", allocated=allocated)


def some_objects(random: Random) -> list[Keyed]:
    """Draw a cluster in any order; some keys come twice."""
    objects: list[Keyed] = [("gpu", device_class("gpu")), ("t", claim_template())]
    slices = [(f"s{i % 9}", some_slice(random, i)) for i in range(12)]
    claims = [(f"team-a/c{i % 9}", some_claim(random, i)) for i in range(12)]
    nodes = [
        (name, node(name, ready=random.random() < 0.9, labels={"a": "b"}))
        for name in random.choice([[], NODES, NODES[:3]])
    ]
    pods = [
        (f"team-a/p{i}", pod(f"p{i}", requests={"cpu": 1}, node_name=NodeName(name)))
        for i, name in enumerate(random.choices(NODES, k=4))
    ]
    rules = [("r", taint_rule(taint(), pool=NODES[0]))]
    objects += [*slices, *claims, *nodes, *pods, *random.choice([[], rules])]
    random.shuffle(objects)
    return objects


def believed(snapshot: Snapshot) -> dict[str, Any]:
    """Spread out all that is known, maps as dicts."""
    inventory = snapshot.inventory
    maps = {
        field: dict(value.items())
        for owner in (inventory, snapshot)
        for field in owner.__struct_fields__
        for value in (getattr(owner, field),)
        if hasattr(value, "with_items")
    }
    pages = [page.data for page in inventory.pages]
    return {**maps, "pages": pages, "grown": inventory.grown}


@pytest.mark.parametrize("seed", range(40))
def test_all_at_once_is_one_after_the_other(seed: int) -> None:
    """Into nothing, and into what was there before."""
    random = Random(seed)
    before, objects = some_objects(random)[:15], some_objects(random)
    for known in ([], before):
        one_by_one = Snapshot()
        for key, value in known:
            one_by_one = observe(one_by_one, key, value)
        at_once = observe_all(one_by_one, objects)
        for key, value in objects:
            one_by_one = observe(one_by_one, key, value)
        assert believed(at_once) | {"grown": 0} == believed(one_by_one) | {"grown": 0}
        if not known:
            assert at_once.grown <= one_by_one.grown


def test_what_came_before_is_as_it_was() -> None:
    """A Snapshot is never changed, by many objects as little as by one."""
    empty = Snapshot()
    objects = some_objects(Random(1))
    first = observe_all(empty, objects)
    said = believed(first)
    observe_all(first, some_objects(Random(2)))
    assert believed(first) == said
    assert believed(empty) == believed(Snapshot())
