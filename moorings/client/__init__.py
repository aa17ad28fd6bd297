"""Moorings from Python: plans in process, and gangs on a bus.

    from moorings.client import load, plan

    answer = plan(load("cluster.yaml", "job.yaml"))
    print(answer.status, [gang.verdict for gang in answer.gangs])

Everything named here is public; docs/python.md describes it with examples.
"""

from moorings.client.picture import FleetDrawing, draw
from moorings.client.planning import PlanSession, load, plan
from moorings.errors import BadInputError, MooringsError, UnknownNameError, UsageError
from moorings.plan.plan import ClaimPlan, GangPlan, Plan, PlanStatistics, PodPlan

__all__ = [
    "BadInputError",
    "ClaimPlan",
    "FleetDrawing",
    "GangPlan",
    "MooringsError",
    "Plan",
    "PlanSession",
    "PlanStatistics",
    "PodPlan",
    "UnknownNameError",
    "UsageError",
    "draw",
    "load",
    "plan",
]
