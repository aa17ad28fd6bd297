"""Recorded solves, as the solver says that they were opened and answered."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from contracts.ids import ClusterName, SolveID
from contracts.solves import SolveDecided, SolveOpened
from solver.decision import DECISION, Decision
from solver.problem.problem import Problem
from solver.record import Recorded, sha_of
from solver.versions import VERSION, dependency_versions, platform_tag


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


def recorded(
    problem: Problem, decision: Decision | None, cluster: ClusterName, **opened: Any
) -> Recorded:
    """Record a Problem here and now, with this answer, as the service does."""
    data = b"" if decision is None else DECISION.encode(decision)
    whole = SolveOpened(
        cluster=cluster,
        solve=SolveID("s"),
        problem=problem.hash,
        version=VERSION,
        platform=platform_tag(),
        dependencies=dependency_versions(),
        epoch=1,
        opened_at="",
    )
    answer = structs.replace(
        solve_decided("s", cluster), problem=problem.hash, decision=sha_of(data)
    )
    return Recorded(
        opened=structs.replace(whole, **opened),
        decided=None if decision is None else answer,
        root=problem.data,
        pages={page.sha: page.data for page in problem.pages},
        decision=data,
    )
