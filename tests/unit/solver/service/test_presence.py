"""Which nodes are away, by their heartbeats and by our own connection."""

from __future__ import annotations

import pytest

from contracts.ids import NodeName
from solver.service.presence import find_presence_changes

A = NodeName("a")


@pytest.mark.parametrize(
    ("seen", "away", "connected", "now", "changes"),
    [
        ({A: 95.0}, False, 0.0, 100.0, []),
        ({A: 60.0}, False, 0.0, 100.0, [(A, True)]),
        ({A: 60.0}, False, 90.0, 100.0, []),
        ({}, False, 80.0, 100.0, []),
        ({}, False, 60.0, 100.0, [(A, True)]),
        ({A: 95.0}, True, 0.0, 100.0, [(A, False)]),
        ({A: 60.0}, True, 95.0, 100.0, []),
    ],
)
def test_a_node_is_away_after_the_grace_while_connected(
    seen: dict[NodeName, float],
    away: bool,
    connected: float,
    now: float,
    changes: list[tuple[NodeName, bool]],
) -> None:
    """While we are not connected nobody is judged by silence."""
    found = find_presence_changes(
        seen, {A: away}, connected_since=connected, now=now, grace_s=30.0
    )
    assert list(found) == changes
