"""Which patterns the classes use when nodes and gangs may be split: nearly an answer.

A basic solution splits no more classes than there are kinds of member, so all others
are settled by it. What is split is left for CP-SAT, together with the gangs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from msgspec import Struct

from solver.engines.glop import Program
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master import MasterData, PatternUse
from solver.engines.pattern.columns.objective import Floor, Objective, weigh_pattern
from solver.engines.pattern.columns.pricing import Pattern

TOLERANCE = 1e-6
"""Numbers that are this close to whole ones are."""


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
            g
            for g, count in enumerate(self.gangs)
            if abs(count - round(count)) > TOLERANCE
        )


def solve_relaxation(
    data: MasterData,
    patterns_by_class: Mapping[int, Sequence[Pattern]],
    objective: Objective,
    floors: Sequence[Floor],
) -> RelaxedSolution | None:
    """Solve without whole numbers; None: GLOP gave up."""
    # First the rows: nodes of each class, pods of each member kind, floors.
    owners = sorted(patterns_by_class)
    row_of_class = {owner: number for number, owner in enumerate(owners)}
    first_member_row, first_floor_row = len(owners), len(owners) + data.members
    bounds: list[tuple[float | None, float | None]] = [
        (None, float(data.sizes[owner])) for owner in owners
    ]
    bounds.extend((0.0, None) for _ in range(data.members))
    bounds.extend((float(floor.value), None) for floor in floors)
    program = Program(bounds)
    # Then the columns: gangs, which take pods, and patterns, which supply them.
    for g, kind in enumerate(data.gangs):
        entries = [(first_member_row + m, -float(pods)) for m, pods in kind.members]
        for number, floor in enumerate(floors):
            entries.append((first_floor_row + number, float(floor.objective.gangs[g])))
        program.add(float(objective.gangs[g]), entries, float(data.available[g]))
    columns: list[tuple[int, Pattern]] = []
    for owner in owners:
        for pattern in patterns_by_class[owner]:
            entries = [(row_of_class[owner], 1.0)]
            entries.extend(
                (first_member_row + m, float(pods)) for m, pods in pattern.counts
            )
            for number, floor in enumerate(floors):
                worth = float(weigh_pattern(floor.objective, pattern))
                entries.append((first_floor_row + number, worth))
            program.add(float(weigh_pattern(objective, pattern)), entries, None)
            columns.append((owner, pattern))
    if program.solve() is None:
        return None
    values = program.read_values()
    count = len(data.gangs)
    return _separate_whole(columns, values[count:], values[:count])


def _separate_whole(
    columns: Sequence[tuple[int, Pattern]],
    values: Sequence[float],
    gangs: Sequence[float],
) -> RelaxedSolution:
    """Round each column down, and note the classes where that loses something."""
    uses: list[PatternUse] = []
    split: dict[int, None] = {}
    for (owner, pattern), value in zip(columns, values, strict=True):
        whole = int(value + TOLERANCE)
        if whole:
            uses.append((owner, pattern, whole))
        if value - whole > TOLERANCE:
            split[owner] = None
    return RelaxedSolution(tuple(uses), tuple(split), tuple(gangs))


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
        gangs[g] = min(data.available[g], ceil(relaxed.gangs[g] - TOLERANCE), room)
        for m, pods in members:
            supply[m] -= pods * gangs[g]
    return Solution(tuple(gangs), relaxed.uses)
