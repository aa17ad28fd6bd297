"""Moorings from Python: plans in process, and gangs on a bus.

    from moorings.client import load, plan

    answer = plan(load("cluster.yaml", "job.yaml"))
    print(answer.status, [gang.verdict for gang in answer.gangs])

Everything named here is public; docs/python.md describes it with examples.
"""

from moorings.client.blocking import Session, connect
from moorings.client.live import AsyncSession, GangStatus, Remedy, connect_async
from moorings.client.picture import FleetDrawing, draw
from moorings.client.planning import PlanSession, load, plan
from moorings.errors import (
    BadInputError,
    CannotReadError,
    LocalStackError,
    MooringsError,
    NotStoredError,
    UnknownNameError,
    UsageError,
)
from moorings.plan.plan import ClaimPlan, GangPlan, Plan, PlanStatistics, PodPlan

__all__ = [
    "AsyncSession",
    "BadInputError",
    "CannotReadError",
    "ClaimPlan",
    "FleetDrawing",
    "GangPlan",
    "GangStatus",
    "LocalStackError",
    "MooringsError",
    "NotStoredError",
    "Plan",
    "PlanSession",
    "PlanStatistics",
    "PodPlan",
    "Remedy",
    "Session",
    "UnknownNameError",
    "UsageError",
    "connect",
    "connect_async",
    "draw",
    "load",
    "plan",
]
