"""Notices that no publisher or no solver leads."""

from __future__ import annotations

from datetime import datetime

from contracts.fence import SolverSeen
from contracts.ids import ClusterName
from contracts.liveness import SILENT_S, PublisherLeads
from moorings.views.times import show_time


def describe_silence(leader: PublisherLeads | None, now: datetime) -> str:
    """Write that no publisher leads and since when; empty if one does or never did.

    Without a cluster nobody leads, and nothing waits at gates.
    """
    if leader is None:
        return ""
    try:
        silent_s = (now - datetime.fromisoformat(leader.at)).total_seconds()
    except (TypeError, ValueError):
        silent_s = float("inf")
    if silent_s < SILENT_S:
        return ""
    return (
        f"no publisher leads in cluster {leader.cluster}: {leader.holder} was "
        f"last heard from at {show_time(leader.at)}. Until one runs again, pods wait "
        "at the gate and decisions are not written"
    )


def describe_no_solver(
    cluster: ClusterName, seen: SolverSeen | None, now: datetime
) -> str:
    """Write that no solver leads and since when; empty if one does."""
    if seen is None:
        return f"no solver has ever led in cluster {cluster}: gangs wait until one runs"
    if not seen.is_silent(now.timestamp()):
        return ""
    return (
        f"no solver leads in cluster {cluster}: {seen.claim.holder} was last "
        f"heard from at {show_time(seen.at_s)}. Nothing is decided until one runs "
        "again, or until NATS stores messages again, if its disk is full (`moorings "
        "doctor` tells)"
    )
