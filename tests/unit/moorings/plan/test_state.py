"""What is there before anything is decided."""

from __future__ import annotations

from contracts.ids import NodeName
from moorings.plan.state import apply_state, with_node
from solver.snapshot.snapshot import Snapshot
from tests import builders
from tests.builders.inputs import entries, written_pod


def test_two_slices_of_one_name_stay_two() -> None:
    """Files of two clusters may name them alike; the API server would not."""
    one = builders.resource_slice(*builders.devices(1), name="s", pool="one")
    two = builders.resource_slice(*builders.devices(1), name="s", pool="two")
    assert len(apply_state(entries(one, two)).inventory.slices) == 2


def test_a_node_may_be_known_by_its_name_alone() -> None:
    assert NodeName("node-7") in with_node(Snapshot(), "node-7").inventory.nodes


def test_a_pod_uses_something_once_its_node_is_settled() -> None:
    """Bound, or pinned by us; one that waits uses nothing."""
    waiting, bound = written_pod("a"), written_pod("b", nodeName="node-1")
    assert list(apply_state(entries(waiting, bound)).pod_nodes) == ["team-a/b"]


def test_what_grew_is_nobodys_business() -> None:
    """It would be copied with each object."""
    claims = [builders.claim(name=f"c-{i}") for i in range(3)]
    assert not apply_state(entries(*claims)).grown
