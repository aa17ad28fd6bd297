"""Checks that the clocks agree: ours, the API server's, NATS', the nodes'. Pure.

Decisions do not depend on clocks. What does: tokens and certificates, which are valid
for a time, ages that people read, and taints that evict after seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from math import ceil

from contracts.counts import counted
from moorings.doctor.facts import BusFacts, Clock, ClusterFacts, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.views.names import name_some

WARN_S = 5.0
FAIL_S = 300.0
"""Tokens and certificates that were made just now are not valid yet."""
_REMEDY = "run an NTP client (chrony, systemd-timesyncd) on both"


def check_cluster_clocks(facts: ClusterFacts, now_s: float) -> Iterator[CheckLine]:
    """Check the API server's clock against ours, and nodes' against its own.

    `now_s` is ours, when the Leases of the nodes were read.
    """
    yield _check_clock("clock.api-server", facts.clock)
    name, leases = "clock.nodes", facts.node_leases
    if isinstance(leases, Unread):
        yield unread(name, leases)
        return
    server_s = now_s - facts.clock.ahead_s
    ahead = []
    for lease in leases:
        renewed_s = _parse_time((lease.get("spec") or {}).get("renewTime"))
        # One that is behind cannot be told from one that is silent.
        if renewed_s - server_s - facts.clock.within_s > WARN_S:
            ahead.append(str(lease["metadata"]["name"]))
    if ahead:
        yield warn(
            name,
            counted(len(ahead), "node is", "nodes are")
            + f" ahead of the API server: {name_some(ahead)}",
            "run an NTP client on them",
        )
    elif leases:
        nodes = counted(len(leases), "node")
        yield ok(name, f"none of {nodes} is ahead of the API server")


def check_bus_clock(facts: BusFacts) -> Iterator[CheckLine]:
    """Check NATS' clock against ours: it stamps messages, and ages end by it."""
    if isinstance(facts.clock, Unread):
        yield unread("clock.nats", facts.clock)
    else:
        yield _check_clock("clock.nats", facts.clock)


def _check_clock(name: str, clock: Clock) -> CheckLine:
    side = "ahead" if clock.ahead_s > 0 else "behind"
    said = f"this machine is {abs(clock.ahead_s):.1f} s {side}"
    if clock.least_s > FAIL_S:
        return fail(name, f"{said}: tokens and certificates may be refused", _REMEDY)
    if clock.least_s > WARN_S:
        return warn(name, f"{said}: ages are wrong", _REMEDY)
    most_s = ceil(10 * (abs(clock.ahead_s) + clock.within_s)) / 10
    return ok(name, f"differs by at most {most_s} s")


def _parse_time(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
