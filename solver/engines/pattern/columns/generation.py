"""One goal over more patterns than can be listed: price, round, decide, tighten.

The master's shares are rounded; CP-SAT decides all gangs together with the patterns of
some classes, group by group. What then lies between the answer and the bound is mostly
that gangs are whole, which the master does not know: cuts do.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_pool import Offers
from solver.engines.pattern.columns.cuts import Wish, only_pods, pods_of, wished
from solver.engines.pattern.columns.integer_master import Choice, Choosing, Chosen
from solver.engines.pattern.columns.layout import Layout, asked_by
from solver.engines.pattern.columns.master import SCALE, Cut, Master, Priced, Used
from solver.engines.pattern.columns.objective import (
    Measure,
    Reached,
    worth_at_most,
    worth_of,
)
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.columns.rounding import relaxed, taken_in

TURNS = 12
"""Groups of classes that are freed one after the other at most."""
RELAXED = 12
"""Patterns of a class that the relaxed answer may mix."""
WISHES = 24
"""Sets of gangs that are tried beyond the best answer."""
SHARE = 0.5
"""Of the work that is left, what one turn may take."""
LATER_WORK = 1.0
"""Work that a goal beyond the gangs may take."""
TIGHTEN_WORK = 1.0
"""Work that is left for `_tighten`."""
WISH_WORK, TRY_WORK = 0.5, 1.0


class PricedGoal:
    """The search for one measure; `best` is an answer that keeps what was reached."""

    def __init__(
        self,
        layout: Layout,
        budget: Budget,
        measure: Measure,
        reached: Sequence[Reached],
        best: Choice | None,
    ) -> None:
        self._layout = layout
        self._budget = budget
        self._measure = measure
        self._reached = tuple(reached)
        self._offers = Offers()
        self._cuts: list[Cut] = []
        self.best = best
        self.value = 0 if best is None else measured(measure, best)
        self.bound = 0

    def run(self) -> None:
        """Find an answer and a bound."""
        master = Master(self._layout.side, self._measure, self._reached)
        if self.best is not None:
            master.offer(self.best.used)
            self._offers.add_used(self.best.used)
        priced = self._priced(master, self._layout.first)
        known = worth_at_most(self._measure, self._layout.side.available)
        self.bound = min(priced.bound, known)
        split = self._settle()
        turns = self._offers.turns(split)[: TURNS if self._is_about_gangs() else 1]
        for number, offers in enumerate(turns):
            if self.best is None or self.value >= self.bound:
                return
            fixed = [item for item in self.best.used if item[0] not in offers]
            share = 1.0 if number == len(turns) - 1 else SHARE
            limit = (self._budget.left - TIGHTEN_WORK) * share
            if not self._is_about_gangs():
                limit = LATER_WORK
            self._keep(self._choose(offers, fixed, limit))
        if self._is_about_gangs() and self.best is not None:
            self._tighten()

    def _priced(self, master: Master, first: Sequence[int]) -> Priced:
        priced = master.run(self._layout.pricing, self._layout.bounding, first)
        self._offers.add_priced(priced)
        self._budget.listed(len(self._offers))
        self._cuts.extend(priced.cuts)
        return priced

    def _settle(self) -> Sequence[int]:
        """Begin with what a relaxed answer settles; gives the classes it splits."""
        side = self._layout.side
        offers = self._offers.all(RELAXED)
        found = relaxed(side, offers, self._measure, self._reached)
        if found is None:
            self._begin(Choice((0,) * len(side.gangs), ()))
            return ()
        self._begin(taken_in(side, found))
        return found.split

    def _begin(self, choice: Choice) -> None:
        """Take an answer to begin with, unless it loses what was reached."""
        kept = all(measured(r.measure, choice) >= r.value for r in self._reached)
        value = measured(self._measure, choice)
        if kept and (self.best is None or value > self.value):
            self.best, self.value = choice, value

    def _choose(
        self, offers: dict[int, list[Pattern]], fixed: Sequence[Used], limit: float
    ) -> Chosen:
        model = Choosing(self._layout.side, offers, fixed)
        model.keep(self._reached)
        if self.best is not None:
            model.hint(self.best)
        return model.solve(self._measure, self.bound, self._budget, limit)

    def _keep(self, chosen: Chosen) -> None:
        if chosen.choice is None:
            return
        if self.best is None or chosen.value > self.value:
            self.best, self.value = chosen.choice, chosen.value

    # --- gangs are whole -----------------------------------------------------------

    def _is_about_gangs(self) -> bool:
        """Say whether the goal and all before it count gangs alone."""
        measures = (self._measure, *(item.measure for item in self._reached))
        return not any(m.rank or m.kept or m.touched for m in measures)

    def _tighten(self) -> None:
        """Wish for better gangs until there are none, or the nodes cannot take them."""
        target = self.bound
        for _ in range(WISHES):
            if target <= self.value or self._budget.left <= 0:
                return
            wish = wished(
                self._layout.side,
                self._cuts,
                Wish(self._measure, self._reached, target),
                self._budget,
                WISH_WORK,
            )
            if target == self.bound:
                self.bound = target = max(self.value, wish.bound)
            if not wish.gangs or wish.value <= self.value:
                return
            if self._has_room(wish.gangs) and not self._try(wish.gangs):
                target = wish.value - 1

    def _has_room(self, gangs: Sequence[int]) -> bool:
        """Say whether nodes could take fractions of these pods; if not, cut."""
        side = self._layout.side
        pods = pods_of(side, gangs)
        worth = [asked_by(self._layout.demand, m) for m in range(side.members)]
        master = Master(only_pods(side, pods, worth), Measure(tuple(worth)), ())
        priced = self._priced(master, [price * SCALE for price in worth])
        wanted = sum(each * count for each, count in zip(worth, pods, strict=True))
        return priced.bound >= wanted

    def _try(self, gangs: Sequence[int]) -> bool:
        """Look for a better answer with the patterns that these gangs brought."""
        before = self.value
        offers = next(iter(self._offers.turns(())), {})
        used = self.best.used if self.best is not None else ()
        fixed = [item for item in used if item[0] not in offers]
        model = Choosing(self._layout.side, offers, fixed)
        model.keep((*self._reached, Reached(self._measure, before + 1)))
        model.hint(Choice(tuple(gangs), tuple(used)))
        self._keep(model.solve(self._measure, self.bound, self._budget, TRY_WORK))
        return self.value > before


def measured(measure: Measure, choice: Choice) -> int:
    """Weigh an answer."""
    total = sum(w * n for w, n in zip(measure.gangs, choice.gangs, strict=True))
    return total + sum(worth_of(measure, p) * nodes for _, p, nodes in choice.used)
