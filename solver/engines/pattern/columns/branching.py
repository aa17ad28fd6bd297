"""Branching over gangs: whole gangs of whose pods fractions have places, best first.

A gang kind of which a fraction is in makes two subproblems: at most so many gangs, or
more. Each is priced (branch and price; Barnhart et al., 1998), so its bound holds as
the master's does: for any prices, it is what nodes earn at most and what gangs within
the subproblem are worth beyond their pods (Lagrange). The largest open one bounds every
answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from operator import mul

from msgspec import Struct

from solver.engines.pattern.columns.master import GAP
from solver.engines.pattern.columns.master_data import SCALE
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.columns.restricted_master import (
    WHOLE,
    RestrictedMaster,
    RestrictedSolution,
    each_alone,
)
from solver.stopping import is_stopped

MAX_SOLVED = 300
"""Programs that are solved at most."""
SOLVED_ROWS = 250_000
"""Rows of them all together, at most."""
PRICED_STEPS = 300_000_000
"""Steps that are looked at in all, at most."""
ROUNDS = 40
"""Times that prices are asked for one subproblem at most."""

Counts = tuple[int, ...]
"""Gangs, by kind."""


class BranchResult(Struct, frozen=True):
    """What is known of the best whole gangs."""

    gangs: Counts
    """Worth as much as the bound; fractions of their pods have places. Empty: none
    were found."""
    bound: int
    """No answer is worth more, unless it is worth less than was asked for."""


class Subproblem(Struct, frozen=True):
    """So many gangs of each kind are in, at least and at most."""

    least: Counts
    most: Counts


class Relaxed(Struct, frozen=True):
    """What a subproblem comes to with fractions."""

    bound: int
    """No answer in it is worth more."""
    worth: float
    """Of the gangs, less pods without a place."""
    gangs: tuple[float, ...]
    """How many of each kind; empty: no answer in it matters."""


class GangBranching:
    """The tree of subproblems; call `run` once. All objectives must be of gangs."""

    def __init__(
        self,
        model: PatternModel,
        patterns_by_class: Mapping[int, Sequence[Pattern]],
        objective: Objective,
        floors: Sequence[Floor],
    ) -> None:
        """`patterns_by_class`: to begin with; more are priced."""
        self._model, self._data = model, model.data
        self._objective, self._floors = objective, tuple(floors)
        self._restricted = RestrictedMaster(
            self._data,
            objective,
            floors,
            each_alone(dict(enumerate(self._data.sizes))),
            without_place=model.costs_without_place,  # so that none is impossible
        )
        self._restricted.add_patterns(patterns_by_class)
        pricings = PRICED_STEPS // self._model.pricing.work
        self._left = min(MAX_SOLVED, SOLVED_ROWS // self._restricted.rows, pricings)
        """Programs that may still be solved."""
        self._split_ages = [0] * len(self._data.gangs)
        """In how many programs, one after the other, each kind was in by fractions."""

    def run(self, least: int, bound: int) -> BranchResult:
        """Look for the best gangs that are worth more than `least`; `bound`: at most.

        Of equally good subproblems the last one made comes first: a dive.
        """
        nothing = (0,) * len(self._data.gangs)
        subproblems = [(-bound, 0, Subproblem(nothing, self._data.available))]
        number = 0
        while subproblems and self._left > 0 and not is_stopped():
            bound = -subproblems[0][0]
            _, _, subproblem = heappop(subproblems)
            if not self._may_keep_floors(subproblem):
                continue
            relaxed = self._relax(subproblem, least)
            if relaxed is None:
                return BranchResult((), bound)
            if relaxed.bound <= least:
                continue
            children: tuple[Subproblem, ...] = (subproblem,)
            if relaxed.bound >= bound:
                split = self._choose(relaxed.gangs)
                if split is None:
                    return self._read(relaxed, bound)
                children = tuple(_divide(subproblem, split, relaxed.gangs[split]))
            # A subproblem that is worth less than others now waits for its turn.
            for child in children:
                number -= 1
                heappush(subproblems, (-min(bound, relaxed.bound), number, child))
        return BranchResult((), -subproblems[0][0] if subproblems else least)

    def _may_keep_floors(self, subproblem: Subproblem) -> bool:
        """True if any gangs in it are above each floor; else GLOP would give up."""
        return all(
            sum(
                worth * (most if worth > 0 else least)
                for worth, least, most in zip(
                    floor.objective.gangs,
                    subproblem.least,
                    subproblem.most,
                    strict=True,
                )
            )
            >= floor.value
            for floor in self._floors
        )

    def _relax(self, subproblem: Subproblem, least: int) -> Relaxed | None:
        """Price patterns for it, until its bound is known; None: GLOP gave up.

        Where nothing can be worth more than `least`, that is enough to know.
        """
        self._restricted.limit_gangs(subproblem.least, subproblem.most)
        lowest: int | None = None
        for number in range(ROUNDS):
            solved = self._restricted.solve()
            self._left -= 1
            if solved is None:
                return None
            # Read now: patterns that are added change the program.
            gangs = self._restricted.read_gangs()
            bound, is_any_new = self._price(subproblem, solved)
            lowest = bound if lowest is None else min(lowest, bound)
            if lowest // SCALE <= least:
                return Relaxed(lowest // SCALE, 0.0, ())
            is_met = lowest / SCALE - solved.worth < GAP * max(1.0, abs(solved.worth))
            if is_met or not is_any_new or number == ROUNDS - 1 or self._left <= 0:
                return Relaxed(lowest // SCALE, solved.worth, gangs)
        return None

    def _price(
        self, subproblem: Subproblem, solved: RestrictedSolution
    ) -> tuple[int, bool]:
        """Bound a subproblem at the program's prices, times SCALE, and add patterns.

        Whether any of these is new.
        """
        model, sizes = self._model, self._data.sizes
        rounded = self._restricted.round(solved.pods, solved.floors)
        found, patterns = model.pricing.find_best(rounded.prices)
        earned = found.tolist()
        priced = zip(range(len(sizes)), earned, patterns, strict=True)
        is_any_new = self._restricted.add_better(priced, solved)
        if model.bound_pricing is not model.pricing:
            earned = model.bound_pricing.find_best(rounded.prices)[0].tolist()
        total, limits = sum(map(mul, sizes, earned)), subproblem
        bound = self._restricted.bound(rounded, total, limits.least, limits.most)
        return bound, is_any_new

    def _choose(self, gangs: Sequence[float]) -> int | None:
        """Choose the kind to divide by: the one that is split for longest; None: none.

        To divide by others changes who else is split, not what comes of it: there are
        many equal gangs to split instead. Of kinds split as long, the largest gangs:
        small ones fill what is left in the end.
        """
        worth, ages = self._objective.gangs, self._split_ages
        for g, count in enumerate(gangs):
            ages[g] = ages[g] + 1 if abs(count - round(count)) > WHOLE else 0
        split = [g for g, age in enumerate(ages) if age]
        return max(split, key=lambda g: (ages[g], worth[g], g), default=None)

    def _read(self, relaxed: Relaxed, bound: int) -> BranchResult:
        """Read whole gangs; none where some of their pods lack a place."""
        gangs = tuple(map(round, relaxed.gangs))
        pairs = zip(gangs, self._objective.gangs, strict=True)
        worth = sum(count * each for count, each in pairs)
        has_places = worth == bound and relaxed.worth > worth - 0.5
        return BranchResult(gangs if has_places else (), bound)


def _divide(subproblem: Subproblem, split: int, count: float) -> Iterator[Subproblem]:
    """Divide it by the gangs of one kind; the half that is nearer comes last."""
    whole = int(count)
    fewer = Subproblem(subproblem.least, _replace(subproblem.most, split, whole))
    more = Subproblem(_replace(subproblem.least, split, whole + 1), subproblem.most)
    yield from (fewer, more) if count - whole >= 0.5 else (more, fewer)


def _replace(counts: Counts, kind: int, count: int) -> Counts:
    return (*counts[:kind], count, *counts[kind + 1 :])
