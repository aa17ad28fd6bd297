"""Which nodes are away, judged from heartbeats and our own connection.

Heartbeats count only while we are connected, and after each reconnect every node gets
the full grace again: a restarted NATS has forgotten all of them. Pure; `now` and the
time of the connection are arguments, in seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.ids import NodeName


def judge_presence(
    seen: Mapping[NodeName, float],
    announced: Mapping[NodeName, bool],
    *,
    connected_since: float,
    now: float,
    grace_s: float,
) -> Iterator[tuple[NodeName, bool]]:
    """Go through the nodes whose presence changed: (node, away).

    `seen` is the time of each node's last heartbeat; `announced` says of each node
    with an agent whether it counts as away now.
    """
    for node, was_away in announced.items():
        last = max(seen.get(node, connected_since), connected_since)
        away = now - last > grace_s
        heard = node in seen and now - seen[node] <= grace_s
        if away and not was_away:
            yield node, True
        elif was_away and heard:
            yield node, False
