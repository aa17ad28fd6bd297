"""What-if: a recorded Problem with changes, to be solved again.

Changes what is asked or what is there, and nothing else: the verdicts of selectors are
those that were recorded, so added nodes are like one that was judged. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct, structs

from contracts.codec import Codec
from contracts.ids import NodeName
from moorings.errors import BadInputError
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.timeline.altered import (
    MOST_NODES,
    healed,
    with_ended,
    with_nodes,
    with_pods,
)
from solver.timeline.holdings import Holding
from solver.timeline.terms import without_term

AddedNodes = Annotated[int, Meta(ge=0, le=MOST_NODES)]
PodCount = Annotated[int, Meta(ge=1, le=5000)]


class WhatIf(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """The changes of a what-if; without any it is a replay."""

    leave_out: tuple[str, ...] = ()
    """Gangs of the batch, by uid."""
    pods: dict[str, PodCount] = {}
    """Pods of a member, by `uid/member`."""
    priorities: dict[str, int] = {}
    """By uid."""
    end: tuple[str, ...] = ()
    """Gangs that hold devices, by `namespace/name`: what they hold is free."""
    without: tuple[str, ...] = ()
    """Terms that gangs do without, by `uid/path` (`solver/timeline/terms.py`)."""
    heal: bool = False
    """True: all devices are healthy and all nodes ready."""
    add_nodes: AddedNodes = 0
    like: str = ""
    """The node that added ones are like, with nothing of their devices held."""


WHAT_IF: Codec[WhatIf] = Codec(WhatIf, "what-if")


def change_problem(
    problem: Problem,
    what_if: WhatIf,
    freed: Iterable[Holding],
    used: Mapping[str, int],
) -> Problem:
    """Ask a recorded question in another way.

    `freed`: what those hold that end; `used`: what gangs use, besides devices, of the
    node that added ones are like.

    Raises:
        BadInputError: it names a gang, a member, a term or a node that is not in the
            Problem.
    """
    changed = problem
    if what_if.add_nodes:
        changed = with_nodes(problem, NodeName(what_if.like), what_if.add_nodes, used)
        if changed is problem:
            raise BadInputError("like", f"no node {what_if.like!r} in this solve")
    changed = with_ended(changed, freed)
    if what_if.heal:
        changed = healed(changed)
    return changed.with_gangs(_change_gangs(problem.gangs, what_if))


def _change_gangs(gangs: tuple[GangPart, ...], what_if: WhatIf) -> tuple[GangPart, ...]:
    """Change the gangs of a batch; they stay in the order of their urgency."""
    uids = {str(gang.uid) for gang in gangs}
    members = {f"{gang.uid}/{m.name}" for gang in gangs for m in gang.members}
    _check_known("leaveOut", what_if.leave_out, uids)
    _check_known("priorities", what_if.priorities, uids)
    _check_known("pods", what_if.pods, members)
    of_terms = (path.partition("/")[0] for path in what_if.without)
    _check_known("without", of_terms, uids)
    changed = [
        _change_gang(g, what_if) for g in gangs if g.uid not in what_if.leave_out
    ]
    return tuple(sorted(changed, key=lambda gang: -gang.priority))


def _check_known(field: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInputError(field, f"no {name!r} in this solve")


def _change_gang(gang: GangPart, what_if: WhatIf) -> GangPart:
    pods = {m.name: what_if.pods.get(f"{gang.uid}/{m.name}", 0) for m in gang.members}
    gang = with_pods(gang, {name: count for name, count in pods.items() if count})
    for path in what_if.without:
        uid, _, term = path.partition("/")
        if uid == gang.uid:
            without = without_term(gang, term)
            if without is None:
                raise BadInputError("without", f"no {path!r} in this solve")
            gang = without
    priority = what_if.priorities.get(str(gang.uid), gang.priority)
    return structs.replace(gang, priority=priority)
