"""Holders are counted by name: who takes twice has once, who gives back gives all."""

from __future__ import annotations

from typing import Any

from contracts.allocation import AllocationResult
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
