"""That no publisher leads, in words."""

from __future__ import annotations

from datetime import datetime

from contracts.liveness import SILENT_S, PublisherLeads


def describe_silence(leader: PublisherLeads | None, now: datetime) -> str:
    """Say that no publisher leads, and since when; empty: one does, or never did.

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
        f"no publisher leads in cluster {leader.cluster}: {leader.holder} was last "
        f"heard of at {leader.at}. Pods at the gate wait, and what is decided is not "
        "written, until one runs again"
    )
