"""Which patterns the classes use when nodes and gangs may be split: nearly an answer.

A basic solution splits no more classes than there are kinds of member, so all others
are settled by it. What is split is left for CP-SAT, together with the gangs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from msgspec import Struct

from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master_data import MasterData, PatternUse
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.columns.restricted_master import (
    WHOLE,
    RestrictedMaster,
    each_alone,
)


class RelaxedSolution(Struct, frozen=True):
    """An answer with fractions: what is whole of it, and which classes are not."""

    uses: tuple[PatternUse, ...]
    """By class, rounded down."""
    split: tuple[int, ...]
    """Classes with nodes that were split."""
    gangs: tuple[float, ...]
    """How many of each kind."""

    @property
    def split_gangs(self) -> tuple[int, ...]:
        """List the gang kinds of which a fraction is in."""
        return tuple(
            g for g, count in enumerate(self.gangs) if abs(count - round(count)) > WHOLE
        )


def solve_relaxation(
    data: MasterData,
    patterns_by_class: Mapping[int, Sequence[Pattern]],
    objective: Objective,
    floors: Sequence[Floor],
) -> RelaxedSolution | None:
    """Solve without whole numbers; None: GLOP gave up."""
    sizes = {owner: data.sizes[owner] for owner in sorted(patterns_by_class)}
    restricted = RestrictedMaster(data, objective, floors, each_alone(sizes))
    restricted.add_patterns({owner: patterns_by_class[owner] for owner in sizes})
    if restricted.solve() is None:
        return None
    # Round each column down, and note the classes where that loses something.
    uses: list[PatternUse] = []
    split: dict[int, None] = {}
    for ((owner, pattern, _),), value in restricted.read_columns():
        whole = int(value + WHOLE)
        if whole:
            uses.append((owner, pattern, whole))
        if value - whole > WHOLE:
            split[owner] = None
    return RelaxedSolution(tuple(uses), tuple(split), restricted.read_gangs())


def round_down(data: MasterData, relaxed: RelaxedSolution) -> Solution:
    """Make it whole: gangs are taken in while the whole patterns have their pods."""
    supply = [0] * data.members
    for _, pattern, nodes in relaxed.uses:
        for member, pods in pattern.counts:
            supply[member] += pods * nodes
    gangs = [0] * len(data.gangs)
    by_share = sorted(
        range(len(gangs)), key=lambda g: (-relaxed.gangs[g] / data.available[g], g)
    )
    for g in by_share:
        members = data.gangs[g].members
        room = min((supply[m] // pods for m, pods in members), default=0)
        gangs[g] = min(data.available[g], ceil(relaxed.gangs[g] - WHOLE), room)
        for m, pods in members:
            supply[m] -= pods * gangs[g]
    return Solution(tuple(gangs), relaxed.uses)
