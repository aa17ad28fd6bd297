"""Which nodes are away, judged from heartbeats and our own connection.

Heartbeats count only while we are connected, and after each reconnect every node gets
the full grace again: a restarted NATS has forgotten all of them. Pure; `now` and the
time of the connection are arguments, in seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.ids import NodeName


def find_presence_changes(
    heartbeats: Mapping[NodeName, float],
    away_by_node: Mapping[NodeName, bool],
    *,
    connected_since: float,
    now: float,
    grace_s: float,
) -> Iterator[tuple[NodeName, bool]]:
    """Yield the nodes whose presence changed: (node, away).

    `heartbeats` has the time of each node's last one, `away_by_node` every node with
    an agent, and whether it counts as away now.
    """
    for node, was_away in away_by_node.items():
        last = max(heartbeats.get(node, connected_since), connected_since)
        is_away = now - last > grace_s
        is_alive = node in heartbeats and now - heartbeats[node] <= grace_s
        if is_away and not was_away:
            yield node, True
        elif was_away and is_alive:
            yield node, False
