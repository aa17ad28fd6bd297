"""Better gangs, with patterns that are priced for each neighborhood.

Where kinds of pod are many, nearly every node needs a pattern of its own, and those
that prices of the whole cluster found do not go together. So each neighborhood has
prices of its own. Pods may lack a place at a penalty a little above what they are
worth, which grows: whole gangs change places over answers that are not quite one.
"""

from __future__ import annotations

from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.improvement import offer_placed
from solver.engines.pattern.columns.incumbent import Incumbent, keeps_floors
from solver.engines.pattern.columns.integer_master import (
    Solution,
    count_spare_places,
)
from solver.engines.pattern.columns.local_master import MOST_PRICINGS, LocalMaster
from solver.engines.pattern.columns.local_search import (
    Neighborhood,
    NeighborhoodSearch,
    PartialSolution,
)
from solver.engines.pattern.columns.master import MasterResult
from solver.engines.pattern.columns.master_data import SCALE
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pseudo_random import shuffled

LEAST_CLASSES, MOST_CLASSES, GANG_KINDS = 20, 160, 120
"""Classes of a neighborhood, and kinds of gang."""
AT_A_LOSS = 30
"""Of them, those that prices say should be out or in, at most; and as many that could
use places which no pod takes."""
LEAST_LOSS = SCALE // 50
"""What a class must lose to be at a loss."""
CLASS_PATTERNS, POOLED_PATTERNS = 25, 10
"""Patterns of a class that CP-SAT chooses from, and those of the pool that prices
begin with, besides the ones in use."""
WORK = 0.12
"""Work for a neighborhood."""
EASY, HARD = 0.3, 0.9
"""Shares of it: what takes less could be larger, what takes more should be smaller."""
PENALTIES, FIRST_PENALTY = (1, 3, 6, 20), 1
"""Half-units of worth that a pod without a place costs, by what it is worth, and where
to begin. At the lowest, gangs come in before there are places for all of their pods."""
PHASES = 16
"""Times that the penalty is chosen."""
PATIENCE = 16
"""Neighborhoods without gain after which it is chosen anew."""
MAX_NEIGHBORHOODS = 120
"""At one penalty."""
MOST_STEPS = 4_000_000_000
"""Steps that pricing may take in all neighborhoods together, at most."""


class PricedSearch:
    """Improves an answer that may be short of places; call `run` once."""

    def __init__(
        self, source: ColumnSource, incumbent: Incumbent, priced: MasterResult
    ) -> None:
        """`incumbent`: gets answers; counts gangs only.

        `priced`: prices that bound the answer; what is at a loss by them is decided
        anew most often.
        """
        self._source = source
        self._budget = source.budget
        self._incumbent = incumbent
        self._data = source.model.data
        self._prices, self._gains = priced.prices.members, priced.gains
        earned, _ = source.model.pricing.find_best(priced.prices)
        self._most_earned = earned.tolist()
        by_gain = sorted(range(len(self._gains)), key=lambda g: abs(self._gains[g]))
        self._doubtful = frozenset(by_gain[: len(by_gain) // 2])
        """The half of the kinds of gang for which it matters least to be in."""
        self._order: list[int] = []
        """Classes that are still to be dealt."""
        self._deals = self._turn = 0
        self._size = LEAST_CLASSES
        self._steps_left = MOST_STEPS
        self._failures = self._left = 0

    def run(self, solution: Solution, work: float) -> None:
        """Decide one neighborhood after the other, while there is work to spend.

        `solution`: may be short of places.
        """
        incumbent, budget = self._incumbent, self._budget
        work = min(work, budget.remaining)
        reserve = budget.remaining - work
        if incumbent.best is not None and not keeps_floors(solution, incumbent.floors):
            solution = incumbent.best
        chosen = FIRST_PENALTY
        for number in range(1, PHASES + 1):
            if incumbent.is_proven or budget.remaining <= reserve:
                return
            # Of the work each phase has a part, and what those before it left; one
            # more is for taking gangs out at last.
            until = reserve + work * (1 - number / (PHASES + 1))
            current = self._run_with(solution, PENALTIES[chosen], until)
            solution = current.solution
            offer_placed(self._source, incumbent, solution)
            # Pods that lack a place become dearer; an answer that is stuck is left.
            most = len(PENALTIES) - 1
            chosen = min(chosen + 1, most) if current.shortage else 0

    def _run_with(
        self, solution: Solution, penalty: int, until: float
    ) -> PartialSolution:
        """Improve at one penalty, until so little of the budget remains."""
        self._failures, self._size = 0, LEAST_CLASSES
        self._left = MAX_NEIGHBORHOODS
        costs = self._weigh_pods(penalty)
        search = NeighborhoodSearch(self._data, self._incumbent, costs=costs)
        return search.run(solution, self, self._budget, until)

    def propose(self, current: PartialSolution) -> Neighborhood | None:
        """Propose the next part that could gain; None: too many did not."""
        while self._failures < PATIENCE and self._left > 0 and self._steps_left > 0:
            self._left -= 1
            patterns_by_class = self._price(current)
            if patterns_by_class is not None:
                gangs = self._choose_gangs(current.solution)
                return Neighborhood(patterns_by_class, gangs, WORK)
            self.report(current, is_better=False, spent=0.0)
        return None

    def report(
        self, _current: PartialSolution, *, is_better: bool, spent: float
    ) -> None:
        """Grow or shrink, and lose patience."""
        self._failures = 0 if is_better else self._failures + 1
        self._resize(spent, is_better=is_better)

    def _resize(self, spent: float, *, is_better: bool) -> None:
        """Make neighborhoods as large as their work allows; `spent`: share of it."""
        if spent > HARD:
            self._size = max(LEAST_CLASSES, self._size * 4 // 5)
        elif spent < EASY and not is_better:
            self._size = min(MOST_CLASSES, self._size * 5 // 4)

    def _weigh_pods(self, penalty: int) -> tuple[int, ...]:
        """Return what each pod without a place costs, by member kind."""
        prices = self._source.model.first_prices
        return tuple(max(1, -(-penalty * price // SCALE)) for price in prices)

    def _price(self, current: PartialSolution) -> dict[int, list[Pattern]] | None:
        """Price patterns for the next neighborhood; None: it could not gain."""
        incumbent, pool = self._incumbent, self._source.pool
        in_use = self._choose_classes(current.solution)
        supply = [0] * self._data.members
        for owner, pattern, nodes in current.solution.uses:
            if owner not in in_use:
                for member, pods in pattern.counts:
                    supply[member] += pods * nodes
        begun = {
            owner: [*patterns, *pool.list_class(owner, POOLED_PATTERNS)]
            for owner, patterns in in_use.items()
        }
        master = LocalMaster(
            self._source.model, incumbent.objective, incumbent.floors, supply, begun
        )
        result = master.run()
        self._steps_left -= MOST_PRICINGS * self._source.model.pricing.work
        if result is None or int(2 * result.worth + 1e-6) <= current.value:
            return None
        chosen = {
            owner: [*patterns, *result.patterns_by_class[owner][:CLASS_PATTERNS]]
            for owner, patterns in in_use.items()
            if owner in result.patterns_by_class
        }
        return {
            owner: list(dict.fromkeys(patterns)) for owner, patterns in chosen.items()
        }

    def _choose_classes(self, solution: Solution) -> dict[int, list[Pattern]]:
        """Choose the next classes, each with the patterns that it uses.

        Half of them lose something, if so many do.
        """
        self._turn += 1
        if not self._order:
            self._deals += 1
            self._order = shuffled(range(len(self._data.sizes)), self._deals)
        losing = dict.fromkeys(
            (
                *self._find_classes_at_a_loss(solution),
                *self._find_classes_with_surplus(solution),
            )
        )
        preferred = shuffled(list(losing), self._turn)[: self._size // 2]
        chosen: dict[int, list[Pattern]] = {owner: [] for owner in preferred}
        others = [owner for owner in self._order if owner not in chosen]
        room = self._size - len(chosen)
        chosen.update((owner, []) for owner in others[:room])
        self._order = others[room:]
        for owner, pattern, _ in solution.uses:
            if owner in chosen:
                chosen[owner].append(pattern)
        return chosen

    def _find_classes_at_a_loss(self, solution: Solution) -> list[int]:
        """Find classes whose nodes earn less than they could at the prices."""
        sizes = self._data.sizes
        lost = [
            most * size for most, size in zip(self._most_earned, sizes, strict=True)
        ]
        for owner, pattern, nodes in solution.uses:
            earned = sum(self._prices[m] * pods for m, pods in pattern.counts)
            lost[owner] -= nodes * earned
        return [owner for owner, loss in enumerate(lost) if loss > LEAST_LOSS]

    def _find_classes_with_surplus(self, solution: Solution) -> list[int]:
        """Find classes with places that no pod takes: two for each such place."""
        spare = count_spare_places(self._data, solution)
        owners_by_member: dict[int, list[int]] = {}
        for owner, pattern, _ in solution.uses:
            for member, _ in pattern.counts:
                if spare[member] > 0:
                    owners_by_member.setdefault(member, []).append(owner)
        return [
            owner
            for member, owners in owners_by_member.items()
            for owner in shuffled(owners, self._turn + member)[: 2 * spare[member]]
        ]

    def _choose_gangs(self, solution: Solution) -> frozenset[int]:
        """Choose kinds of gang: those that lack a place, then others by chance.

        First those that are in or out at a loss, then those that could use places
        which no pod takes, then some that hardly gain or lose.
        """
        kinds, available = self._data.gangs, self._data.available
        spare = count_spare_places(self._data, solution)
        lacking = [
            g
            for g, kind in enumerate(kinds)
            if solution.gangs[g] and any(spare[m] < 0 for m, _ in kind.members)
        ]
        by_chance = shuffled(range(len(kinds)), self._turn)
        at_a_loss = [
            g
            for g in by_chance
            if (self._gains[g] > 0 and solution.gangs[g] < available[g])
            or (self._gains[g] < 0 and solution.gangs[g] > 0)
        ]
        fitting = [
            g for g in by_chance if any(spare[m] > 0 for m, _ in kinds[g].members)
        ]
        doubtful = [g for g in by_chance if g in self._doubtful]
        preferred = (
            *lacking,
            *at_a_loss[:AT_A_LOSS],
            *fitting[:AT_A_LOSS],
            *doubtful[: GANG_KINDS // 2],
        )
        return frozenset(list(dict.fromkeys((*preferred, *by_chance)))[:GANG_KINDS])
