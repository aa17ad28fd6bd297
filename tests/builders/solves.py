"""Recorded solves, as the solver says that they were opened and answered."""

from __future__ import annotations

from contracts.ids import ClusterName, SolveID
from contracts.solves import SolveDecided, SolveOpened


def solve_opened(name: str, cluster: ClusterName) -> SolveOpened:
    """Open a solve."""
    return SolveOpened(
        cluster=cluster,
        solve=SolveID(name),
        problem="p",
        version="1",
        platform="linux",
        epoch=1,
        opened_at="2026-11-20T12:00:00Z",
    )


def solve_decided(name: str, cluster: ClusterName) -> SolveDecided:
    """Answer a solve: one gang is in."""
    return SolveDecided(
        cluster=cluster,
        solve=SolveID(name),
        problem="p",
        decision="d",
        status="Optimal",
        allocated=1,
        pending=0,
        rejected=0,
        solve_seconds=0.1,
    )
