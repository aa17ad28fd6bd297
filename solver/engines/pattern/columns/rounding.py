"""Which patterns the classes use when nodes and gangs may be split: nearly an answer.

A basic solution splits no more classes than there are kinds of member, so all others
are settled by it. What is split is left for CP-SAT, together with the gangs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from msgspec import Struct

from solver.engines.glop import Program
from solver.engines.pattern.columns.integer_master import Choice
from solver.engines.pattern.columns.master import Side, Used
from solver.engines.pattern.columns.objective import Measure, Reached, worth_of
from solver.engines.pattern.columns.pricing import Pattern

WHOLE = 1e-6
"""Numbers that are this close to whole ones are."""


class Relaxed(Struct, frozen=True):
    """An answer with fractions: what is whole of it, and which classes are not."""

    used: tuple[Used, ...]
    """By class, rounded down."""
    split: tuple[int, ...]
    """Classes with nodes that were split."""
    gangs: tuple[float, ...]
    """How many of each kind."""


def relaxed(
    side: Side,
    offers: Mapping[int, Sequence[Pattern]],
    measure: Measure,
    reached: Sequence[Reached],
) -> Relaxed | None:
    """Solve without whole numbers; None: GLOP gave up."""
    owners = sorted(offers)
    rows = {owner: number for number, owner in enumerate(owners)}
    bounds: list[tuple[float | None, float | None]] = [
        (None, float(side.sizes[owner])) for owner in owners
    ]
    bounds.extend((0.0, None) for _ in range(side.members))
    bounds.extend((float(item.value), None) for item in reached)
    program = Program(bounds)
    members, kept = len(owners), len(owners) + side.members
    for g, kind in enumerate(side.gangs):
        entries = [(members + m, -float(pods)) for m, pods in kind.members]
        for number, item in enumerate(reached):
            entries.append((kept + number, float(item.measure.gangs[g])))
        program.add(float(measure.gangs[g]), entries, float(side.available[g]))
    columns: list[tuple[int, Pattern]] = []
    for owner in owners:
        for pattern in offers[owner]:
            entries = [(rows[owner], 1.0)]
            entries.extend((members + m, float(pods)) for m, pods in pattern.counts)
            for number, item in enumerate(reached):
                entries.append((kept + number, float(worth_of(item.measure, pattern))))
            program.add(float(worth_of(measure, pattern)), entries, None)
            columns.append((owner, pattern))
    solved = program.solve()
    if solved is None:
        return None
    values = solved[0]
    count = len(side.gangs)
    return _split(columns, values[count:], values[:count])


def _split(
    columns: Sequence[tuple[int, Pattern]],
    values: Sequence[float],
    gangs: Sequence[float],
) -> Relaxed:
    used: list[Used] = []
    split: dict[int, None] = {}
    for (owner, pattern), value in zip(columns, values, strict=True):
        whole = int(value + WHOLE)
        if whole:
            used.append((owner, pattern, whole))
        if value - whole > WHOLE:
            split[owner] = None
    return Relaxed(tuple(used), tuple(split), tuple(gangs))


def taken_in(side: Side, found: Relaxed) -> Choice:
    """Make it whole: gangs are taken in while the whole patterns have their pods."""
    left = [0] * side.members
    for _, pattern, nodes in found.used:
        for member, pods in pattern.counts:
            left[member] += pods * nodes
    gangs = [0] * len(side.gangs)
    order = sorted(
        range(len(gangs)), key=lambda g: (-found.gangs[g] / side.available[g], g)
    )
    for g in order:
        members = side.gangs[g].members
        room = min((left[m] // pods for m, pods in members), default=0)
        gangs[g] = min(side.available[g], ceil(found.gangs[g] - WHOLE), room)
        for m, pods in members:
            left[m] -= pods * gangs[g]
    return Choice(tuple(gangs), found.used)
