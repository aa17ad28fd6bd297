"""However many devices are said to be ill at once, few end their pods in a minute."""

from __future__ import annotations

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from publisher.slices.eviction_budget import FEWEST, EvictionBudget

NODE, OTHER = NodeName("node-1"), NodeName("node-2")


def devices(count: int, pool: str = "p") -> list[DeviceID]:
    """Name devices of a pool."""
    return [
        DeviceID(DriverName("d"), PoolName(pool), DeviceName(f"gpu-{number:03}"))
        for number in range(count)
    ]


def test_a_share_of_all_devices_has_its_turn_each_minute() -> None:
    """In the order in which they were said to be ill."""
    budget = EvictionBudget(5.0)
    ill = devices(30)
    budget.want(NODE, ill)
    assert not any(map(budget.may_evict, ill))
    assert budget.admit(200, 0.0) == {ill[0].pool_id}
    assert [budget.may_evict(device) for device in ill] == [True] * 10 + [False] * 20
    assert budget.admit(200, 59.0) == frozenset()
    assert budget.admit(200, 60.0) == {ill[0].pool_id}
    assert sum(map(budget.may_evict, ill)) == 20


def test_a_small_fleet_loses_a_node_at_once() -> None:
    """A share of few devices would be none."""
    budget = EvictionBudget(5.0)
    budget.want(NODE, devices(FEWEST))
    budget.admit(16, 0.0)
    assert all(map(budget.may_evict, devices(FEWEST)))


def test_nothing_is_evicted_where_no_share_is_given() -> None:
    """As a person may want while something is wrong with the agents."""
    budget = EvictionBudget(0.0)
    budget.want(NODE, devices(1))
    assert budget.admit(1000, 0.0) == frozenset()


def test_who_recovers_gives_its_turn_back_and_spends_the_minute_all_the_same() -> None:
    """Otherwise a device that comes and goes would have the others evicted."""
    budget = EvictionBudget(5.0)
    budget.want(NODE, devices(FEWEST))
    budget.admit(0, 0.0)
    budget.want(NODE, ())
    assert not any(map(budget.may_evict, devices(FEWEST)))
    budget.want(OTHER, devices(1, "other"))
    assert budget.admit(0, 30.0) == frozenset()
    assert budget.admit(0, 60.0) == {devices(1, "other")[0].pool_id}


def test_what_is_said_again_keeps_its_turn() -> None:
    """Agents repeat themselves."""
    budget = EvictionBudget(5.0)
    budget.want(NODE, devices(2))
    budget.admit(0, 0.0)
    budget.want(NODE, devices(3))
    assert [budget.may_evict(device) for device in devices(3)] == [True, True, False]
