"""Recorded solves as they are shown, and how two answers differ. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from moorings.recorded import SolveEntry
from solver.decision import Decision, GangDecision, TierValue
from solver.problem.gangs import GangPart, RequestPart
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart, PoolPart, UsePart
from solver.tiers import Tier

TIERS = {
    Tier.GANGS: "weight of the allocated gangs",
    Tier.EXTRA: "devices of extra pods, beyond their gangs' minimum",
    Tier.ALTERNATIVES: "ranks of the chosen alternatives",
    Tier.LEFTOVER: "lost value of the remaining devices",
    Tier.TOPOLOGY: "cost of topology preferences",
    Tier.NODES: "nodes used",
}
"""What each tier of the objective measures (docs/contributing/objective.md)."""
Row = dict[str, Any]


def view_entry(entry: SolveEntry) -> Row:
    """Return the row of a recorded solve."""
    opened, decided = entry.opened, entry.decided
    row = {
        "id": opened.solve,
        "at": opened.opened_at,
        "gangs": len(opened.gangs),
        "uids": [gang.uid for gang in opened.gangs],
        "status": "open",
        "allocated": 0,
        "pending": 0,
        "rejected": 0,
        "milliseconds": 0.0,
    }
    if decided is None:
        return row
    return {
        **row,
        "status": decided.status,
        "allocated": decided.allocated,
        "pending": decided.pending,
        "rejected": decided.rejected,
        "milliseconds": round(decided.solve_seconds * 1000, 1),
    }


def view_solve(entry: SolveEntry, problem: Problem, decision: Decision | None) -> Row:
    """Return all of one solve: what was asked, of what, and what was decided."""
    opened = entry.opened
    answers = {each.key: each for each in decision.gangs} if decision else {}
    return {
        **view_entry(entry),
        "version": opened.version,
        "platform": opened.platform,
        "dependencies": opened.dependencies,
        "problem": opened.problem,
        "cluster": _count_cluster(problem),
        "parameters": {
            "workLimit": problem.parameters.work_limit,
            "seed": problem.parameters.seed,
            "lastTier": problem.parameters.last_tier,
        },
        "batch": [_view_gang(gang, answers.get(gang.key)) for gang in problem.gangs],
        "objective": view_objective(decision.objective) if decision else [],
        "statistics": _view_statistics(decision) if decision else {},
        "nodes": sorted(_list_nodes(problem)),
    }


def view_objective(tiers: Iterable[TierValue]) -> list[Row]:
    """Return the tiers of an answer, each with how far from its bound it may be."""
    return [
        {
            "tier": tier.tier,
            "what": TIERS[tier.tier],
            "best": "most" if tier.tier.is_gain else "least",
            "priority": tier.priority,
            "value": tier.value,
            "bound": tier.bound,
        }
        for tier in tiers
    ]


def compare(before: Decision, after: Decision) -> Row:
    """Return what another answer has otherwise: by gang, by node, and its worth."""
    old = {each.key: each for each in before.gangs}
    new = {each.key: each for each in after.gangs}
    keys = [*old, *(key for key in new if key not in old)]
    nodes_before, nodes_after = _count_pods(before), _count_pods(after)
    nodes = sorted(nodes_before.keys() | nodes_after.keys())
    return {
        "status": {"before": before.status, "after": after.status},
        "objective": {
            "before": view_objective(before.objective),
            "after": view_objective(after.objective),
        },
        "gangs": [
            {
                "name": _name_gang(old.get(key) or new[key]),
                "before": _view_answer(old.get(key)),
                "after": _view_answer(new.get(key)),
            }
            for key in keys
        ],
        "nodes": [
            {
                "name": node,
                "before": nodes_before.get(node, {}),
                "after": nodes_after.get(node, {}),
            }
            for node in nodes
        ],
    }


def _count_pods(decision: Decision) -> dict[str, dict[str, int]]:
    """Count the pods of each gang on each node."""
    counts: dict[str, Counter[str]] = {}
    for gang in decision.gangs:
        for member in gang.members:
            counts.setdefault(member.node, Counter())[_name_gang(gang)] += 1
    return {node: dict(by_gang) for node, by_gang in counts.items()}


def _name_gang(gang: GangDecision | GangPart) -> str:
    return f"{gang.namespace}/{gang.name}"


def _view_answer(gang: GangDecision | None) -> Row | None:
    """Return what was decided of a gang; None: it was not asked."""
    if gang is None:
        return None
    return {
        "verdict": gang.verdict,
        "pods": len(gang.members),
        "nodes": len({member.node for member in gang.members}),
        "reasons": [str(reason) for reason in gang.reasons],
    }


def _view_gang(gang: GangPart, answer: GangDecision | None) -> Row:
    members = answer.members if answer is not None else ()
    return {
        "uid": gang.uid,
        "name": _name_gang(gang),
        "priority": gang.priority,
        "weight": gang.weight,
        "members": [
            {
                "name": member.name,
                "count": member.count,
                "asks": [
                    _describe_request(request)
                    for claim in member.claims
                    for request in claim.requests
                ],
            }
            for member in gang.members
        ],
        "answer": _view_answer(answer),
        "places": dict(Counter(member.node for member in members)),
    }


def _describe_request(request: RequestPart) -> str:
    """Describe a request: `8 gpu.example.com or 4 ...`."""
    return " or ".join(
        f"{'all' if each.all_devices else each.count} {each.device_class}"
        for each in request.alternatives
    )


def _view_statistics(decision: Decision) -> Row:
    statistics = decision.statistics
    return {
        "engine": statistics.engine or "counting",
        "engineReason": statistics.engine_reason,
        "models": statistics.models,
        "variables": statistics.variables,
        "constraints": statistics.constraints,
        "work": statistics.work,
    }


def _count_cluster(problem: Problem) -> Row:
    counts: Counter[str] = Counter()
    for page in problem.pages:
        for part in page.parts():
            match part.value:
                case NodePart():
                    counts["nodes"] += 1
                case PoolPart(devices=devices):
                    counts["pools"] += 1
                    counts["devices"] += len(devices)
                case UsePart(taken=taken, shared=shared):
                    counts["held"] += len(taken) + len(shared)
                case _:
                    counts["classes"] += 1
    names = ("nodes", "pools", "devices", "held", "classes")
    return {name: counts[name] for name in names}


def _list_nodes(problem: Problem) -> set[str]:
    """List the nodes that have devices."""
    return {
        part.value.node
        for page in problem.pages
        for part in page.parts()
        if isinstance(part.value, PoolPart) and part.value.node
    }
