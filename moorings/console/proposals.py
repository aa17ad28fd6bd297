"""The smallest changes that would let a gang in, as what-ifs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from contracts.ids import GangKey
from moorings.console.what_if import WhatIf
from solver.decision import Decision
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem

if TYPE_CHECKING:
    from solver.timeline.changes import SmallestChange


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
