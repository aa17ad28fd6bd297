"""Which gangs could be in at all: a bound that knows that gangs are whole.

Prices of pods say what all nodes together can earn, so every set of gangs whose pods
cost more is impossible: a cut. CP-SAT chooses the best gangs within all cuts; if nodes
could not even take fractions of those, pricing finds another cut (Benders).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from ortools.sat.python import cp_model

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.master import Cut, Side
from solver.engines.pattern.columns.objective import Measure, Reached
from solver.kinds.demand import GangKind


class Wish(Struct, frozen=True):
    """What gangs are wished for: the best by a measure within what was reached."""

    measure: Measure
    reached: tuple[Reached, ...]
    most: int
    """Worth no more than this."""


class Wished(Struct, frozen=True):
    """The best gangs within the cuts."""

    gangs: tuple[int, ...]
    """How many of each kind; empty: none were found."""
    value: int
    bound: int


def wished(
    side: Side, cuts: Iterable[Cut], wish: Wish, budget: Budget, limit: float
) -> Wished:
    """Choose gangs by measures of gangs only."""
    model = cp_model.CpModel()
    gangs = [
        model.new_int_var(0, most, f"in[{g}]") for g, most in enumerate(side.available)
    ]
    for cut in cuts:
        costs = [
            sum(cut.prices[m] * pods for m, pods in kind.members) for kind in side.gangs
        ]
        model.add(cp_model.LinearExpr.weighted_sum(gangs, costs) <= cut.earned)
    for item in wish.reached:
        worth = cp_model.LinearExpr.weighted_sum(gangs, item.measure.gangs)
        model.add(worth >= item.value)
    gain = cp_model.LinearExpr.weighted_sum(gangs, wish.measure.gangs)
    model.add(gain <= wish.most)
    model.maximize(gain)
    found = budget.solve(model, limit)
    if found is None:
        return Wished((), 0, wish.most)
    best = min(wish.most, found.whole_bound)
    return Wished(tuple(map(found.value, gangs)), found.value_reached, best)


def pods_of(side: Side, gangs: Sequence[int]) -> tuple[int, ...]:
    """Count the pods of some gangs by member kind."""
    pods = [0] * side.members
    for kind, count in zip(side.gangs, gangs, strict=True):
        for member, each in kind.members:
            pods[member] += each * count
    return tuple(pods)


def only_pods(side: Side, pods: Sequence[int], worth: Sequence[int]) -> Side:
    """Ask for pods one by one instead of gangs: can the nodes take them all?"""
    kinds = tuple(GangKind(0, worth[m], ((m, 1),)) for m in range(side.members))
    return Side(kinds, tuple(pods), side.members, side.sizes, side.clusters)
