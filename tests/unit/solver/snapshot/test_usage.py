"""Holders are counted by name: who takes twice has once, who gives back gives all."""

from __future__ import annotations

from typing import Any

from contracts.allocation import AllocationResult
from contracts.ids import Namespace
from solver.snapshot.events import quota_event
from solver.snapshot.snapshot import Snapshot
from solver.snapshot.usage import with_holder, without_holder
from tests.builders import DRIVER, allocation, devices, pool, quantities, result
from tests.builders.problems import snapshot_of

GANG, CLAIM = "gang/default/g", "claim/default/c"


def cluster() -> Snapshot:
    """Make a node with two devices."""
    return snapshot_of({"n": [pool(*devices(2), name="n")]})


def of_device(name: str = "gpu-0", **fields: Any) -> AllocationResult:
    """Allocate one device of the node."""
    return allocation(result(name, pool="n", **fields))


def test_a_device_is_free_once_the_last_holder_gave_it_back() -> None:
    """A decision and the claim that it was written into hold one device together."""
    inventory = cluster().inventory
    for holder in (GANG, CLAIM, CLAIM):
        inventory = with_holder(inventory, holder, [of_device()])
    inventory = without_holder(inventory, CLAIM, [of_device()])
    assert inventory.holders.get(f"pool/{DRIVER}/n")
    inventory = without_holder(inventory, GANG, [of_device()])
    assert inventory.holders.get(f"pool/{DRIVER}/n") is None


def test_admin_access_takes_nothing() -> None:
    """Whoever only watches a device leaves it to others (KEP-5018)."""
    inventory = cluster().inventory
    assert with_holder(inventory, GANG, [of_device(admin_access=True)]) is inventory


def test_a_share_counts_once_however_many_hold_it() -> None:
    """Two shares add up; one share of a decision and of its claim does not."""
    inventory = cluster().inventory
    amounts = quantities({"memory": "4Gi"})
    share: dict[str, Any] = {"share_id": "s1", "consumed_capacity": amounts}
    for holder in (GANG, CLAIM):
        inventory = with_holder(inventory, holder, [of_device(**share)])
    other = of_device(share_id="s2", consumed_capacity=amounts)
    inventory = with_holder(inventory, "claim/other/c", [other])
    (use,) = (inventory.holders.get(f"pool/{DRIVER}/n") or {}).values()
    assert {name: len(s.holders) for name, s in use.shares.items()} == {
        "s1": 2,
        "s2": 1,
    }
    assert inventory.held.get(Namespace("default")) == {DRIVER: 1}
    assert inventory.held.get(Namespace("other")) == {DRIVER: 1}


def test_a_namespace_holds_a_device_once_until_its_last_holder_is_gone() -> None:
    """A decision and its claim are one; who holds less may have room in a quota."""
    inventory = cluster().inventory.with_grown()
    mine = Namespace("default")
    both = [of_device(), of_device("gpu-1")]
    inventory = with_holder(inventory, GANG, both)
    inventory = with_holder(inventory, CLAIM, [of_device()])
    assert inventory.held.get(mine) == {DRIVER: 2}
    inventory = without_holder(inventory, GANG, both)
    assert inventory.held.get(mine) == {DRIVER: 1}
    assert quota_event("default") in inventory.grown
    inventory = without_holder(inventory, CLAIM, [of_device()])
    assert inventory.held.get(mine) is None


def test_two_namespaces_that_hold_one_device_both_have_it() -> None:
    """Whoever was faster: each counts what it holds."""
    inventory = cluster().inventory
    inventory = with_holder(inventory, GANG, [of_device()])
    inventory = with_holder(inventory, "claim/other/c", [of_device()])
    assert dict(inventory.held.items()) == {
        "default": {DRIVER: 1},
        "other": {DRIVER: 1},
    }
    assert quota_event("default") not in inventory.grown
