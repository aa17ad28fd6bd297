"""Local search: part of an answer is decided anew, again and again, until the bound.

Two ways take turns, and work goes to the one that gains: *ruin and recreate* takes a
few gangs out and fills up greedily; a *neighborhood* lets CP-SAT decide some nodes,
most of them chosen where most is left at the prices of the linear program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.engines.blocks import Block
from solver.engines.packing.batch import PackingBatch
from solver.engines.packing.cells import CellMaker, PartPatterns
from solver.engines.packing.construct import Density
from solver.engines.packing.loads import Floats, Loads, Spot
from solver.engines.packing.neighborhood import Decided, NeighborhoodModel, Scope
from solver.engines.packing.part_states import Integers
from solver.engines.packing.work import UNIT, Work
from solver.engines.pseudo_random import LinearCongruential, draw_fractions

MOST_TRIED = 30
"""Gangs that ruin and recreate tries to take in, besides those it took out."""
RUINS = 20
"""Tries of ruin and recreate in a row."""
MOST_COMING = 12
MOST_LEAVING = 10
FIRST_NODES, LEAST_NODES, MOST_NODES = 8, 3, 24
FIRST_DOMAINS, LEAST_DOMAINS, MOST_DOMAINS = 6, 4, 16
STEP_WORK, DOMAIN_STEP_WORK = 0.15, 0.3
"""Deterministic time of one neighborhood: of nodes, of domains."""
PLACE_WORK = 6e-5
"""Units to place or remove one pod, or so."""
TRY_WORK, SIZE_WORK = 3e-4, 1e-7
"""Units of one try of ruin and recreate: at least, and for each node and gang."""
GROWTH_PATIENCE = 6
"""Neighborhoods without gain after which they grow."""
PATIENCE, PATIENCE_SHARE = 4.0, 0.5
"""Units without gain after which it ends, and of all that was spent."""
WHOLE_VARIABLES = 8_000
"""Variables of a model of all nodes at once, about; more are not tried."""
SEEDS = 1 << 30


class LocalSearch:
    """Improves one answer in place; `run` it once."""

    def __init__(
        self,
        batch: PackingBatch,
        loads: Loads,
        density: Density,
        bounds: Sequence[int],
        work: Work,
    ) -> None:
        """`bounds`: of the worth of each priority, highest first."""
        self._batch, self._loads = batch, loads
        self._bounds, self._work = tuple(bounds), work
        self._random = LinearCongruential(1)
        sorts = np.array(batch.sort_of, np.int64)
        self._densities: Floats = density.of_sort[sorts]
        self._levels: Integers = np.array(batch.level_of, np.int64)
        self.makers = (CellMaker(batch), PartPatterns(batch))
        self._worth = loads.worth()
        self._nodes, self._domains = FIRST_NODES, FIRST_DOMAINS
        self._idle = 0
        self._label = self._find_label()

    def limit(self, bounds: Sequence[int]) -> None:
        """Stop where these are reached."""
        self._bounds = tuple(bounds)

    @property
    def is_done(self) -> bool:
        """True if nothing better can be, or no work is left."""
        return self._worth >= self._bounds or self._work.is_spent

    def run(self) -> None:
        """Improve until the bound is met or the work is spent."""
        ways = (self._ruin, self._decide)
        gains, spent = [1.0, 1.0], [1e-3, 1e-3]
        turn = 0
        gained = self._work.spent
        while not self.is_done and self._loads.gangs:
            spent_in_vain = self._work.spent - gained
            if spent_in_vain > max(PATIENCE, PATIENCE_SHARE * self._work.spent):
                return
            rates = [gain / cost for gain, cost in zip(gains, spent, strict=True)]
            best = int(rates[1] > rates[0])
            # Every third turn is the other way's: it may gain by now.
            way = best if turn % 3 else 1 - best
            turn += 1
            before, started = self._worth, self._work.spent
            ways[way]()
            gain = _gain(before, self._worth)
            if gain:
                gained = self._work.spent
            gains[way] = 0.9 * gains[way] + gain
            spent[way] = 0.9 * spent[way] + self._work.spent - started

    # --- the whole -------------------------------------------------------------------

    def decide_whole(self, limit: float) -> int | None:
        """Decide all nodes at once, if the model is small; return a bound of it."""
        batch = self._batch
        cells = self.makers[0].make(range(len(batch.nodes)), range(len(batch.pods)))
        size = sum(len(cell.node_patterns) or 2 * len(cell.kinds) for cell in cells)
        domains = sum(
            int(batch.domain[label].max()) + 1 for label in range(len(batch.domain))
        )
        if size + domains * len(batch.sorts) > WHOLE_VARIABLES:
            return None
        nodes = frozenset(range(len(batch.nodes)))
        coming = tuple(int(gang) for gang in self._list_out())
        scope = Scope(nodes, frozenset(), coming)
        bound = self._bounds[0] if len(self._bounds) == 1 else None
        decided = self._solve(scope, limit, bound)
        return decided.bound if len(self._bounds) == 1 else None

    def _solve(self, scope: Scope, limit: float, bound: int | None = None) -> Decided:
        model = NeighborhoodModel(self._batch, self._loads, scope, self.makers)
        self._work.spend(model.size * 4e-5)
        limit = min(limit, max(self._work.left / UNIT, 0.02))
        decided = model.solve(self._work, limit, bound)
        self._worth = self._loads.worth()
        return decided

    # --- neighborhoods ---------------------------------------------------------------

    def _find_label(self) -> int | None:
        """Find the narrowest label that blocks are bound by."""
        labels = {
            label for sort in self._batch.sorts for label in _list_labels(sort.block)
        }
        ordered = [label for label in self._batch.labels if label in labels]
        return ordered[-1] if ordered else None

    def _decide(self) -> None:
        scope = self._choose_scope()
        by_domain = self._label is not None
        decided = self._solve(scope, DOMAIN_STEP_WORK if by_domain else STEP_WORK)
        if decided.is_better:
            self._idle = 0
            return
        self._idle += 1
        if self._idle % GROWTH_PATIENCE == 0:
            step = 2 if decided.is_solved else -2
            self._nodes = min(max(self._nodes + step, LEAST_NODES), MOST_NODES)
            domains = self._domains + step
            self._domains = min(max(domains, LEAST_DOMAINS), MOST_DOMAINS)

    def _choose_scope(self) -> Scope:
        loads = self._loads
        coming = self._shaken(self._list_out(), worst=False)[:MOST_COMING]
        nodes = (
            self._choose_domains() if self._label is not None else self._choose_nodes()
        )
        touched = sorted({gang for node in nodes for gang in loads.on_node[node]})
        leaving = self._shaken(touched, worst=True)[:MOST_LEAVING]
        if self._label is None:
            for gang in leaving[:2]:
                own = sorted({spot.node for spot in loads.gangs[gang]})
                nodes |= set(own[: max(self._nodes // 2, 1)])
        return Scope(frozenset(nodes), frozenset(leaving), tuple(coming))

    def _choose_nodes(self) -> set[int]:
        count = len(self._batch.nodes)
        lost = self._loads.left * self._draw_factors(count, 0.3, 1.7)
        many = self._nodes - self._nodes // 3
        nodes = {int(node) for node in np.argsort(-lost, kind="stable")[:many]}
        while len(nodes) < min(self._nodes, count):
            nodes.add(self._random.below(count))
        return nodes

    def _choose_domains(self) -> set[int]:
        domain = self._batch.domain[self._label]
        known = domain >= 0
        count = int(domain.max()) + 1 if known.any() else 0
        if not count:
            return self._choose_nodes()
        own = np.bincount(domain[known], self._loads.left[known], minlength=count)
        left: Floats = own * self._draw_factors(count, 0.3, 1.7)
        many = self._domains // 2
        chosen = {int(number) for number in np.argsort(-left, kind="stable")[:many]}
        while len(chosen) < min(self._domains, count):
            chosen.add(self._random.below(count))
        return {int(n) for n in np.flatnonzero(np.isin(domain, sorted(chosen)))}

    def _draw_factors(self, count: int, low: float, high: float) -> Floats:
        return low + (high - low) * draw_fractions(self._random.below(SEEDS), count)

    def _shaken(self, gangs: Sequence[int] | Integers, *, worst: bool) -> list[int]:
        """Sort gangs by what they are worth for what they take, shaken a little."""
        chosen = np.asarray(gangs, np.int64)
        density = self._densities[chosen] * self._draw_factors(len(chosen), 0.5, 1.5)
        level = self._levels[chosen]
        keys = (density, -level) if worst else (-density, level)
        return [int(gang) for gang in chosen[np.lexsort(keys)]]

    def _list_out(self) -> Integers:
        """List the gangs that are out."""
        return np.flatnonzero(self._loads.is_out)

    # --- ruin and recreate -----------------------------------------------------------

    def _ruin(self) -> None:
        for _ in range(RUINS):
            if self.is_done or not self._loads.gangs:
                return
            self._ruin_once()

    def _ruin_once(self) -> None:
        loads, batch = self._loads, self._batch
        victims = self._choose_victims()
        removed: dict[int, list[Spot]] = {}
        for gang in victims:
            removed[gang] = loads.remove_gang(gang)
        order = self._shaken(self._list_out(), worst=False)
        order = order[: MOST_TRIED + len(victims)]
        added: list[int] = []
        shake = None
        if not self._random.below(3):
            shake = self._draw_factors(len(batch.nodes), 0.7, 1.3)
        failed = set[int]()
        pods = sum(map(len, removed.values()))
        for gang in order:
            sort = batch.sort_of[gang]
            if sort in failed:
                continue
            pods += 1
            if loads.place_gang(gang, shake=shake):
                added.append(gang)
                pods += len(loads.gangs[gang])
            else:
                failed.add(sort)
        size = len(batch.nodes) + len(batch.sort_of)
        self._work.spend(TRY_WORK + pods * (PLACE_WORK + SIZE_WORK * size))
        worth = loads.worth()
        if worth >= self._worth:
            self._worth = worth
            return
        for gang in added:
            loads.remove_gang(gang)
        for gang, spots in removed.items():
            loads.add_gang(gang, spots)

    def _choose_victims(self) -> list[int]:
        """Choose gangs to take out: such as share nodes, or are worth little."""
        loads = self._loads
        gangs = np.flatnonzero(~loads.is_out)
        count = 1 + self._random.below(max(2, min(6, len(gangs) // 4)))
        if self._random.below(2):
            first = int(gangs[self._random.below(len(gangs))])
            nodes = {spot.node for spot in loads.gangs[first]}
            beside = {g for node in nodes for g in loads.on_node[node]} - {first}
            return [first, *self._shaken(sorted(beside), worst=True)[: count - 1]]
        return self._shaken(gangs, worst=True)[:count]


def _list_labels(block: Block) -> set[int]:
    own = {block.label} if block.label >= 0 else set()
    return own.union(*(_list_labels(inner) for inner, _ in block.inner))


def _gain(before: tuple[int, ...], after: tuple[int, ...]) -> float:
    """Return how much was gained, where the first priority that changed counts."""
    for old, new in zip(before, after, strict=True):
        if old != new:
            return (new - old) / max(abs(old), 1)
    return 0.0
