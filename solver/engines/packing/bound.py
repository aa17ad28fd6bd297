"""What no answer exceeds: a linear program over patterns of parts, and whole gangs.

A *pattern* is a multiset of slots that one part serves. The program mixes patterns of
the parts of each stratum, pods on strata, and fractions of gangs; patterns are found by
prices. Any prices give a bound (Lagrange), summed in whole numbers:

    sum over parts of V + sum over resources of amount * price
      + sum over gangs of max(0, weight - cost of its pods)

where V is the best pattern of a part, and a pod costs what it takes at these prices in
the cheapest stratum. Each is a row about whole gangs, too, and CP-SAT finds the best
gangs within all rows: a bound again, and a target to aim at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from solver.engines import cp_model, cpsat
from solver.engines.glop import Program
from solver.engines.packing.batch import PackingBatch
from solver.engines.packing.counting import (
    Amounts,
    GangRow,
    count_amounts,
    count_domains,
    count_kinds,
)
from solver.engines.packing.loads import Floats, Scale
from solver.engines.packing.part_states import Integers
from solver.engines.packing.strata import Stratum, make_strata
from solver.engines.packing.work import Work

MOST_ROUNDS = 60
PRICE = 1 << 20
"""DualPrices are whole numbers of this part of a unit of weight."""
ROW_BITS = 40
"""Rows of whole gangs have numbers of so many bits at most."""
COLUMN_WORK = 1e-6
"""Seconds of one column in one round, or so."""
CHOICE_WORK = 0.5
"""Deterministic time to choose whole gangs."""


class DualPrices(Struct, frozen=True, eq=False):
    """Dual prices of the linear program, by stratum, in 1/PRICE of a weight."""

    slots: Integers
    """[stratum, slot]."""
    amounts: Integers
    """[stratum, amount]."""
    rows: Integers
    """Of rows about gangs."""


class Bounds:
    """Bounds, prices and a target for the gangs of one priority."""

    def __init__(self, batch: PackingBatch, work: Work) -> None:
        self._batch, self._work = batch, work
        self._amounts: Amounts = count_amounts(batch)
        self.strata: list[Stratum] = make_strata(batch, self._amounts.free)
        self._counted = [
            *count_kinds(batch),
            *count_domains(batch, self._amounts),
        ]
        self.rows: list[GangRow] = [*self._count(), *self._counted]
        self.prices: DualPrices | None = None
        self.fractions: Floats = np.zeros(len(batch.sorts), np.float64)
        """For each gang sort, gangs that are in by the linear program."""

    def scale(self) -> Scale | None:
        """Weigh what is left of nodes at the prices, averaged over strata."""
        if self.prices is None:
            return None
        nodes = np.array([len(s.nodes) for s in self.strata], np.float64)
        share = nodes / max(nodes.sum(), 1.0)
        slots = share @ self.prices.slots
        resources = self._batch.needs.shape[1]
        amounts = share @ self.prices.amounts[:, :resources]
        return Scale(np.rint(slots).astype(np.int64), amounts.astype(np.float64))

    def _count(self) -> list[GangRow]:
        """Make a row of each slot and resource by itself."""
        batch = self._batch
        rows = []
        for slot in range(batch.slot_counts.shape[1]):
            total = sum(
                int(batch.states.most[state, slot]) * count
                for stratum in self.strata
                for state, count in stratum.parts
            )
            rows.append(self._row(batch.slot_counts[:, slot], total))
        for resource in range(self._amounts.needs.shape[1]):
            amounts = [stratum.free[resource] for stratum in self.strata]
            known = [amount for amount in amounts if amount is not None]
            if len(known) == len(amounts):
                rows.append(self._row(self._amounts.needs[:, resource], sum(known)))
        return rows

    def _row(self, cost: Sequence[int] | Integers, total: int) -> GangRow:
        costs = [int(c) for c in cost]
        of_sort = [
            sum(costs[kind] * pods for kind, pods in pods_of.items())
            for pods_of in self._batch.totals
        ]
        return _shorten(of_sort, total)

    # --- the linear program -----------------------------------------------------------

    def relax(self, weights: Sequence[int], floors: Sequence[GangRow]) -> int:
        """Solve the linear program; return a bound of sum(weights * gangs in).

        `floors`: what the gangs of higher priority keep, with signs changed.
        """
        extra = [*self._counted, *floors]
        program = _PatternProgram(
            self._batch, self._amounts, self.strata, weights, extra
        )
        best = sum(
            weight * len(gangs)
            for weight, gangs in zip(weights, self._batch.gangs_of, strict=True)
        )
        for _ in range(MOST_ROUNDS):
            self._work.spend(program.columns * COLUMN_WORK)
            solution = program.solve()
            if solution is None:
                break
            # Read now: what grows below changes the program.
            self.fractions = program.fractions()
            prices, worth = solution
            bound, row = self._lagrange(prices, weights, extra)
            if bound <= best:
                best, self.prices = bound, prices
            self.rows.append(row)
            grown = program.grow(prices)
            if not grown or best <= worth + 1e-6 or self._work.is_spent:
                break
        self.rows = self.rows[:-8] + _newest(self.rows[-8:])
        return best

    def _lagrange(
        self, prices: DualPrices, weights: Sequence[int], extra: Sequence[GangRow]
    ) -> tuple[int, GangRow]:
        batch = self._batch
        total = 0
        cost = np.full(len(batch.pods), -1, object)
        for number, stratum in enumerate(self.strata):
            values = batch.states.value(prices.slots[number])
            total += sum(int(values[state]) * count for state, count in stratum.parts)
            for resource, amount in enumerate(stratum.free):
                if amount is not None:
                    total += amount * int(prices.amounts[number, resource])
            kinds = list(stratum.kinds)
            taken = batch.slot_counts[kinds] @ prices.slots[number] + (
                self._amounts.needs[kinds] @ prices.amounts[number]
            )
            for kind, price in zip(kinds, taken.tolist(), strict=True):
                cost[kind] = price if cost[kind] < 0 else min(cost[kind], price)
        costs = [
            sum(max(cost[kind], 0) * pods for kind, pods in of.items())
            for of in batch.totals
        ]
        for row, price in zip(extra, prices.rows.tolist(), strict=True):
            if price:
                total += row.total * price
                costs = [c + a * price for c, a in zip(costs, row.costs, strict=True)]
        over = sum(
            max(0, weight * PRICE - cost_of) * len(gangs)
            for weight, cost_of, gangs in zip(
                weights, costs, batch.gangs_of, strict=True
            )
        )
        return (total + over) // PRICE, _shorten(costs, total)

    # --- whole gangs ------------------------------------------------------------------

    def choose(
        self, weights: Sequence[int], floors: Sequence[GangRow], bound: int
    ) -> tuple[int, list[int] | None]:
        """Choose the best whole gangs within all rows; return a bound, and how many.

        None: nothing was found within the limit.
        """
        model = cp_model.CpModel()
        gangs = [model.new_int_var(0, len(own), "") for own in self._batch.gangs_of]
        for row in (*self.rows, *floors):
            terms = [(var, c) for var, c in zip(gangs, row.costs, strict=True) if c]
            if terms:
                model.add(cpsat.total(terms) <= row.total)
        terms = [(var, w) for var, w in zip(gangs, weights, strict=True) if w]
        if not terms:
            return 0, [0] * len(gangs)
        worth = cpsat.total(terms)
        model.add(worth <= bound)
        model.maximize(worth)
        limit = min(CHOICE_WORK, max(self._work.left, 0.05))
        outcome = cpsat.solve(model, work_limit=limit, seed=1, feasibility=False)
        self._work.spend_units(outcome.work)
        if not isinstance(outcome, cpsat.Solved):
            return bound, None
        found = [outcome.value(var) for var in gangs]
        return min(bound, outcome.whole_bound), found


def _newest(rows: list[GangRow]) -> list[GangRow]:
    return rows[-3:]


def _shorten(costs: Sequence[int], total: int) -> GangRow:
    """Round a row to numbers of few bits, so that it stays true."""
    largest = max(total, *costs, 1)
    shift = max(largest.bit_length() - ROW_BITS, 0)
    return GangRow(
        tuple(cost >> shift for cost in costs), -(-total >> shift) if shift else total
    )


class _PatternProgram:
    """Patterns of parts, pods on strata, fractions of gangs."""

    def __init__(
        self,
        batch: PackingBatch,
        amounts: Amounts,
        strata: Sequence[Stratum],
        weights: Sequence[int],
        floors: Sequence[GangRow],
    ) -> None:
        """`floors`: rows about gangs alone."""
        self._batch, self._needs, self._strata = batch, amounts.needs, strata
        slots, resources = batch.slot_counts.shape[1], amounts.needs.shape[1]
        bounds: list[tuple[float | None, float | None]] = []
        self._part_row: dict[tuple[int, int], int] = {}
        self._slot_row: dict[tuple[int, int], int] = {}
        self._amount_row: dict[tuple[int, int], int] = {}
        for number, stratum in enumerate(strata):
            for state, count in stratum.parts:
                self._part_row[number, state] = len(bounds)
                bounds.append((None, float(count)))
            for slot in range(slots):
                self._slot_row[number, slot] = len(bounds)
                bounds.append((0.0, None))
            for resource in range(resources):
                amount = stratum.free[resource]
                if amount is not None:
                    self._amount_row[number, resource] = len(bounds)
                    bounds.append((None, float(amount)))
        self._pod_row = range(len(bounds), len(bounds) + len(batch.pods))
        bounds += [(0.0, None)] * len(batch.pods)
        first_floor = len(bounds)
        self._floor_row = range(first_floor, first_floor + len(floors))
        bounds += [(None, float(row.total)) for row in floors]
        self._program = Program(bounds)
        self.columns = 0
        self.is_solved = False
        self._known: set[tuple[int, int, tuple[int, ...]]] = set()
        for sort, pods_of in enumerate(batch.totals):
            entries = [
                (self._pod_row[kind], -float(pods)) for kind, pods in pods_of.items()
            ]
            entries += [
                (first_floor + number, float(row.costs[sort]))
                for number, row in enumerate(floors)
                if row.costs[sort]
            ]
            self._add(float(weights[sort]), entries, float(len(batch.gangs_of[sort])))
        self._add_pods()
        slots_of = np.full(slots, PRICE, np.int64)
        self.grow(
            DualPrices(
                np.tile(slots_of, (len(strata), 1)),
                np.zeros((len(strata), resources), np.int64),
                np.zeros(len(floors), np.int64),
            )
        )

    def _add(
        self, cost: float, entries: Sequence[tuple[int, float]], most: float | None
    ) -> None:
        self._program.add(cost, entries, most)
        self.columns += 1

    def _add_pods(self) -> None:
        batch = self._batch
        for number, stratum in enumerate(self._strata):
            for kind in stratum.kinds:
                pod = batch.pods[kind]
                entries = [(self._pod_row[kind], 1.0)]
                entries += [
                    (self._slot_row[number, slot], -float(count))
                    for slot, count in pod.slots
                ]
                entries += [
                    (self._amount_row[number, resource], float(need))
                    for resource, need in enumerate(self._needs[kind].tolist())
                    if need and (number, resource) in self._amount_row
                ]
                self._add(0.0, entries, None)

    def solve(self) -> tuple[DualPrices, float] | None:
        """Solve; return prices, rounded up to whole numbers, and the worth."""
        solution = self._program.solve()
        self.is_solved = solution is not None
        if solution is None:
            return None
        strata = len(self._strata)
        slots = np.zeros((strata, self._batch.slot_counts.shape[1]), np.int64)
        amounts = np.zeros((strata, self._needs.shape[1]), np.int64)
        for (number, slot), row in self._slot_row.items():
            slots[number, slot] = round(abs(solution.prices[row]) * PRICE)
        for (number, resource), row in self._amount_row.items():
            amounts[number, resource] = round(abs(solution.prices[row]) * PRICE)
        self._part_prices = {
            key: abs(solution.prices[row]) * PRICE
            for key, row in self._part_row.items()
        }
        rows = [round(abs(solution.prices[row]) * PRICE) for row in self._floor_row]
        return DualPrices(slots, amounts, np.array(rows, np.int64)), solution.worth

    _part_prices: dict[tuple[int, int], float] = {}

    def grow(self, prices: DualPrices) -> bool:
        """Add the best pattern of each part where it earns more than the part costs."""
        states, grown = self._batch.states, False
        for number in range(len(self._strata)):
            values = states.value(prices.slots[number])
            for state, _ in self._strata[number].parts:
                price = self._part_prices.get((number, state), -1.0)
                if values[state] <= price + 1:
                    continue
                pattern = states.best(state, prices.slots[number], values)
                key = (number, state, pattern)
                if key in self._known:
                    continue
                self._known.add(key)
                counts = {slot: pattern.count(slot) for slot in pattern}
                entries = [(self._part_row[number, state], 1.0)]
                entries += [
                    (self._slot_row[number, slot], float(count))
                    for slot, count in counts.items()
                ]
                self._add(0.0, entries, None)
                grown = True
        return grown

    def fractions(self) -> Floats:
        """Return how many gangs of each sort are in, as solved last."""
        values = self._program.read_values(len(self._batch.sorts))
        return np.array(values, np.float64)
