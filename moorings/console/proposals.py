"""The smallest changes that would let a gang in, as rows and as what-ifs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from contracts.codec import to_builtins
from contracts.ids import GangKey
from moorings.console.what_if import WhatIf
from moorings.views.ages import format_age
from moorings.views.times import show_time, to_text
from solver.decision import Decision
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem

if TYPE_CHECKING:
    from solver.timeline.changes import SmallestChange
    from solver.timeline.quota_raises import QuotaRaise

Row = dict[str, Any]


def narrow(problem: Problem, decision: Decision, gang: GangKey) -> Problem:
    """Leave of a batch the gangs that matter to one: those ahead, those that are in."""
    placed = {each.key for each in decision.gangs if not each.reasons}
    gangs: list[GangPart] = []
    is_ahead = True
    for part in problem.gangs:
        if is_ahead or part.key in placed:
            gangs.append(part)
        is_ahead = is_ahead and part.key != gang
    return problem.with_gangs(tuple(gangs))


def make_what_if(
    change: SmallestChange,
    gang: GangPart,
    problem: Problem,
    names: Mapping[GangKey, str],
) -> WhatIf:
    """Write a change as a what-if.

    `problem`: the batch; of it those that would end are left out, since they held
    nothing before. `names`: `namespace/name` of each gang.
    """
    batch = {part.key: str(part.uid) for part in problem.gangs}
    return WhatIf(
        heal=change.heal,
        end=tuple(names[key] for key in change.end if key in names),
        leave_out=tuple(batch[key] for key in change.end if key in batch),
        add_nodes=change.nodes,
        like=change.like,
        pods={f"{gang.uid}/{name}": count for name, count in change.pods.items()},
        without=(f"{gang.uid}/{change.without}",) if change.without else (),
    )


def view_change(change: SmallestChange, what_if: WhatIf | None) -> Row:
    """Show a change; `what_if`: as what it can be asked of a recorded solve."""
    return {
        "text": change.text,
        "helps": change.helps,
        "reasons": [],
        "whatIf": None if what_if is None else to_builtins(what_if),
    }


def view_cluster_change(change: SmallestChange, now_s: float) -> Row:
    """Show a change of quota or time, which no recorded solve can be asked about."""
    row = view_change(change, None)
    if change.start_s is None:
        return {**row, "quotas": [_view_raise(each) for each in change.quotas]}
    known = "proven" if change.proven else "perhaps less"
    left = format_age(change.start_s - now_s)
    return {
        **row,
        "text": f"it waits until {show_time(change.start_s)} ({left}), {known}",
        "startsAt": to_text(change.start_s),
        "proven": change.proven,
    }


def _view_raise(each: QuotaRaise) -> Row:
    return {
        "kind": each.kind,
        "name": each.name,
        "field": "borrowingLimit" if each.is_limit else "nominalQuota",
        "flavor": each.flavor,
        "resource": each.resource,
        "amount": each.write(each.amount),
        "insteadOf": each.write(each.instead_of),
    }
