"""What nodes have of a class is what they have now, however it was counted before."""

from __future__ import annotations

import pytest

from contracts.device import ResourcePool
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from solver.problem.surveys import Surveys
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import Page
from solver.snapshot.snapshot import NodePresence, Snapshot, apply
from tests.builders import device, devices, pool
from tests.builders.problems import CLUSTER, snapshot_of

ALL: tuple[str, ...] = ()
"""Selectors that every device passes."""
TABLE = SelectorTable()


def nodes_of(*sizes: int) -> dict[str, list[ResourcePool]]:
    return {f"n{i}": [pool(*devices(n), name=f"n{i}")] for i, n in enumerate(sizes)}


def surveyed(surveys: Surveys, snapshot: Snapshot) -> dict[int, int]:
    surveys.follow(snapshot.inventory.pages)
    return surveys.of(ALL, TABLE).nodes


def announce(snapshot: Snapshot, name: str, *pools: ResourcePool) -> Snapshot:
    message = DevicesAnnounced(cluster=CLUSTER, node=NodeName(name), pools=pools)
    return apply(snapshot, message)


def test_a_change_is_counted_wherever_it_is() -> None:
    """A node grows, one comes on a page of its own, one goes with its page."""
    surveys, snapshot = Surveys(), snapshot_of(nodes_of(8, 8, 4))
    assert surveyed(surveys, snapshot) == {8: 2, 4: 1}
    assert surveys.is_known(ALL, TABLE)
    snapshot = announce(snapshot, "n2", pool(*devices(6), name="n2"))
    assert surveyed(surveys, snapshot) == {8: 2, 6: 1}
    for number in range(3, 40):
        name = f"n{number}"
        snapshot = announce(snapshot, name, pool(*devices(2), name=name))
        assert surveyed(surveys, snapshot) == {8: 2, 6: 1, 2: number - 2}
    assert surveys.is_known(ALL, TABLE)
    snapshot = announce(snapshot, "n0")
    assert surveyed(surveys, snapshot) == {8: 1, 6: 1, 2: 37}


def test_the_capacity_of_a_share_is_the_most_of_any_device() -> None:
    small, large = (
        device("d", capacity={"memory": size}, allow_multiple_allocations=True)
        for size in ("8", "16")
    )
    surveys, snapshot = Surveys(), snapshot_of({"n": [pool(large, name="n")]})
    for shared, most in ((large, 16), (small, 8)):
        snapshot = announce(snapshot, "n", pool(shared, name="n"))
        surveys.follow(snapshot.inventory.pages)
        assert surveys.of(ALL, TABLE).capacity == {"memory": most * 10**9}


def test_nothing_is_read_again_where_no_pool_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is used of nodes changes pages all the time."""
    surveys, snapshot = Surveys(), snapshot_of(nodes_of(8, 8))
    assert surveyed(surveys, snapshot) == {8: 2}
    monkeypatch.setattr("solver.problem.surveys.find_distinct_pools", _read_again)
    away = apply(snapshot, NodePresence(node=NodeName("n1"), away=True))
    pages: list[Page] = list(away.inventory.pages)
    assert pages != list(snapshot.inventory.pages)
    assert surveyed(surveys, away) == {8: 2}


def _read_again(*_: object) -> None:
    raise AssertionError("read again")
