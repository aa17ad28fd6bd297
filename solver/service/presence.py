"""Which nodes are away, judged from heartbeats and our own connection.

Heartbeats count only while we are connected, and after each reconnect every node gets
the full grace again: a restarted NATS has forgotten all of them. So does a node that is
new: its devices are announced before its first heartbeat. Pure; `now` and the time of
the connection are arguments, in seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.ids import NodeName


def find_presence_changes(
    heartbeats: Mapping[NodeName, float],
    away_by_node: Mapping[NodeName, bool],
    *,
    known_since: Mapping[NodeName, float],
    connected_since: float,
    now: float,
    grace_s: float,
) -> Iterator[tuple[NodeName, bool]]:
    """Yield the nodes whose presence changed: (node, away).

    `heartbeats` has the time of each node's last one, `away_by_node` every node with
    an agent, and whether it counts as away now; `known_since` when each was met.
    """
    for node, was_away in away_by_node.items():
        last = max(heartbeats.get(node, known_since[node]), connected_since)
        is_away = now - last > grace_s
        is_alive = node in heartbeats and now - heartbeats[node] <= grace_s
        if is_away and not was_away:
            yield node, True
        elif was_away and is_alive:
            yield node, False


class Presence:
    """When each node was last heard of, and since when we could have heard it."""

    def __init__(self, grace_s: float, now: float) -> None:
        self._grace_s = grace_s
        self._heartbeats: dict[NodeName, float] = {}
        self._known_since: dict[NodeName, float] = {}
        self._connection = (0, now)

    def note_heartbeat(self, node: NodeName, now: float) -> None:
        """Take note that a node was heard of."""
        self._heartbeats[node] = now

    def note_connection(self, count: int, now: float, *, stands: bool) -> None:
        """Take note of our own connection, the `count`-th so far."""
        if count != self._connection[0] or not stands:
            self._connection = (count, now)

    def judge(
        self, away_by_node: Mapping[NodeName, bool], now: float
    ) -> tuple[tuple[NodeName, bool], ...]:
        """Return the nodes whose presence changed: (node, away)."""
        self._heartbeats = {
            node: at
            for node, at in self._heartbeats.items()
            if node in away_by_node or now - at <= self._grace_s
        }
        self._known_since = {
            node: self._known_since.get(node, now) for node in away_by_node
        }
        changes = find_presence_changes(
            self._heartbeats,
            away_by_node,
            known_since=self._known_since,
            connected_since=self._connection[1],
            now=now,
            grace_s=self._grace_s,
        )
        return tuple(changes)
