"""Which nodes are away, by their heartbeats and by our own connection."""

from __future__ import annotations

import pytest

from contracts.ids import NodeName
from solver.service.presence import Presence, find_presence_changes

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
        seen,
        {A: away},
        known_since={A: 0.0},
        connected_since=connected,
        now=now,
        grace_s=30.0,
    )
    assert list(found) == changes


def test_a_new_node_has_the_grace_until_its_first_heartbeat() -> None:
    """However long we have been connected when its devices are announced."""
    presence = Presence(30.0, 0.0)
    assert presence.judge({}, 100.0) == ()
    assert presence.judge({A: False}, 101.0) == ()
    assert presence.judge({A: False}, 131.0) == ()
    assert presence.judge({A: False}, 131.5) == ((A, True),)
    # One that was gone and comes again is new.
    assert presence.judge({}, 140.0) == ()
    assert presence.judge({A: False}, 141.0) == ()
