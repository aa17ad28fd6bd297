"""All checks over what was observed, in the order in which people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from moorings.doctor.check_admission import check_admission
from moorings.doctor.check_api import check_api
from moorings.doctor.check_bus import check_bus
from moorings.doctor.check_clocks import check_bus_clock, check_cluster_clocks
from moorings.doctor.check_control_plane import check_control_plane
from moorings.doctor.check_nodes import (
    check_agents_on_bus,
    check_announced_pools,
    check_nodes,
    check_pace,
    check_published_pools,
)
from moorings.doctor.check_parts import (
    check_decisions,
    check_leader,
    check_lease,
    check_parts,
    check_solver,
)
from moorings.doctor.check_removed_gates import check_removed_gates
from moorings.doctor.check_rights import check_rights
from moorings.doctor.facts import BusFacts, ClusterFacts, Unread
from moorings.doctor.findings import CheckLine, Diagnosis, fail

REFUSED_CLUSTER = "check the address, the network, and the credentials"
REFUSED_BUS = "start NATS, or give its address and user (MOORINGS_SERVER, _BUS_USER)"


def diagnose(
    cluster: ClusterFacts | Unread | None,
    bus: BusFacts | Unread | None,
    *,
    now_s: float,
    own_version: str,
) -> Diagnosis:
    """Judge observations; None: not observed.

    What is `Unread` as a whole was not reachable. `now_s` is our clock.
    """
    return Diagnosis.of(_list_lines(cluster, bus, now_s, own_version))


def _list_lines(
    cluster: ClusterFacts | Unread | None,
    bus: BusFacts | Unread | None,
    now_s: float,
    own_version: str,
) -> Iterator[CheckLine]:
    now = datetime.fromtimestamp(now_s, UTC)
    if isinstance(cluster, Unread):
        yield fail("kubernetes.reachable", cluster.why, REFUSED_CLUSTER)
    elif cluster is not None:
        yield from check_api(cluster)
        yield from check_admission(cluster)
        yield from check_control_plane(cluster)
        yield from check_removed_gates(cluster)
        yield from check_rights(cluster)
        yield from check_parts(cluster, own_version)
        server_s = now_s - cluster.clock.ahead_s
        yield check_lease(cluster, datetime.fromtimestamp(server_s, UTC))
        yield from check_cluster_clocks(cluster, now_s)
        yield from check_nodes(cluster, bus if isinstance(bus, BusFacts) else None)
        yield from check_published_pools(cluster)
    if isinstance(bus, Unread):
        yield fail("nats.reachable", bus.why, REFUSED_BUS)
    elif bus is not None:
        yield from check_bus(bus)
        yield from check_bus_clock(bus)
        ahead_s = 0.0 if isinstance(bus.clock, Unread) else bus.clock.ahead_s
        yield check_solver(bus, now_s - ahead_s)
        yield check_decisions(bus, now_s - ahead_s)
        yield from check_leader(bus, now)
        if not isinstance(cluster, ClusterFacts):
            yield from check_agents_on_bus(bus)
        yield from check_pace(bus)
        yield from check_announced_pools(bus)
