"""What a Node says of itself."""

from __future__ import annotations

import pytest

from contracts.workload import Node, NodeCondition, NodeStatus


@pytest.mark.parametrize(
    ("conditions", "is_ready"),
    [
        ((), None),
        ((NodeCondition(type="DiskPressure", status="True"),), None),
        ((NodeCondition(type="Ready", status="True"),), True),
        ((NodeCondition(type="Ready", status="Unknown"),), False),
    ],
)
def test_a_node_is_ready_if_it_says_so(
    conditions: tuple[NodeCondition, ...], is_ready: bool | None
) -> None:
    """A silent kubelet is not ready; of a Node that nobody judged nothing is known."""
    assert Node(status=NodeStatus(conditions=conditions)).is_ready is is_ready
