"""Diving: an answer with fractions becomes whole a few nodes at a time.

Rounded at once, many nodes that are split between patterns lose what each of them was
to give. Here the patterns that come nearest to a whole node are settled, the rest is
relaxed again, and prices look for patterns that suit what pods are left (column
generation as in Sadykov et al., "Primal heuristics for branch and price", 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.master_data import PatternUse, split_into_pods
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.columns.restricted_master import (
    WHOLE,
    RestrictedMaster,
    RestrictedSolution,
    each_alone,
)
from solver.engines.pattern.columns.rounding import RelaxedSolution
from solver.stopping import is_stopped

SETTLED = 0.08
"""Share of the nodes left that is settled at a time, where no pattern is whole."""
ROUNDS = 4
"""Times that prices are asked before some nodes are settled."""
PRICED_STEPS = 200_000_000
"""Steps that are looked at in all."""
NODE_COST = 1e-3
"""For each node used, in devices: so that none is settled that no pod needs."""


def dive(
    model: PatternModel,
    pool: ColumnPool,
    pods: Sequence[int],
    relaxed: RelaxedSolution,
) -> tuple[PatternUse, ...]:
    """Make a relaxed answer for these pods whole.

    First only what it splits is settled anew, then all; what lacks fewer devices
    counts.
    """
    best: tuple[PatternUse, ...] = ()
    least: int | None = None
    for kept in (relaxed.uses, ()):
        pods_left, nodes_left = list(pods), dict(enumerate(model.data.sizes))
        for owner, pattern, count in kept:
            nodes_left[owner] -= count
            _subtract(pods_left, pattern, count)
        found = Diving(model, pods_left, nodes_left, pool.list_promising()).run()
        for _, pattern, count in found:
            _subtract(pods_left, pattern, count)
        pairs = zip(model.devices, pods_left, strict=True)
        shortage = sum(devices * count for devices, count in pairs)
        if least is None or shortage < least:
            best, least = (*kept, *found), shortage
        if not least:
            break
    return best


def _subtract(pods: list[int], pattern: Pattern, nodes: int) -> None:
    """Take away the pods that have a place on some nodes."""
    for member, count in pattern.counts:
        pods[member] = max(0, pods[member] - count * nodes)


class Diving:
    """Places for pods on nodes that are left; `run` it once."""

    def __init__(
        self,
        model: PatternModel,
        pods: Sequence[int],
        nodes: Mapping[int, int],
        patterns_by_class: Mapping[int, Sequence[Pattern]],
    ) -> None:
        """`pods`: wanted of each member kind; `nodes`: left of each class."""
        self._model = model
        self._pods = list(pods)
        self._nodes = {owner: left for owner, left in nodes.items() if left}
        self._priced = PRICED_STEPS // model.pricing.work
        self._restricted = RestrictedMaster(
            split_into_pods(model.data, pods, model.devices),
            Objective(model.devices),
            (),
            each_alone(self._nodes),
            node_cost=NODE_COST,
        )
        self._restricted.add_patterns(
            {owner: patterns_by_class.get(owner, ()) for owner in self._nodes}
        )

    def run(self) -> list[PatternUse]:
        """Settle nodes until no pod can be placed any more."""
        uses: list[PatternUse] = []
        while not is_stopped():
            settled = self._choose(self._relax())
            if not settled:
                return uses
            for owner, pattern, count in settled:
                self._settle(owner, pattern, count)
            uses.extend(settled)
        return uses

    def _relax(self) -> list[tuple[PatternUse, float]]:
        """Return the fractional uses of each pattern once pricing finds no more."""
        for number in range(ROUNDS):
            solved = self._restricted.solve()
            if solved is None:
                return []
            is_last = number == ROUNDS - 1 or self._priced <= 0
            if is_last or not self._price(solved):
                columns = self._restricted.read_columns()
                return [(use, share) for (use,), share in columns]
        return []

    def _price(self, solved: RestrictedSolution) -> bool:
        """Add the best pattern of each class that is left; whether any is new."""
        self._priced -= 1
        prices = self._restricted.round(solved.pods, ()).prices
        earned, patterns = self._model.pricing.find_best(prices)
        priced = (
            (owner, int(earned[owner]), patterns[owner])
            for owner, left in self._nodes.items()
            if left
        )
        return self._restricted.add_better(priced, solved)

    def _choose(self, columns: Sequence[tuple[PatternUse, float]]) -> list[PatternUse]:
        """Choose what is settled: all that is whole, else what comes nearest to it."""
        whole = [
            (owner, pattern, int(share + WHOLE))
            for (owner, pattern, _), share in columns
            if share >= 1 - WHOLE
        ]
        if whole:
            return whole
        most = max(1, int(SETTLED * sum(self._nodes.values())))
        by_share = sorted(columns, key=lambda column: -column[1])
        chosen: list[PatternUse] = []
        left = list(self._pods)
        owners: set[int] = set()
        for (owner, pattern, _), share in by_share:
            is_of_use = any(left[m] > 0 for m, _ in pattern.counts)
            is_wasteful = any(left[m] < pods for m, pods in pattern.counts)
            if share <= WHOLE or len(chosen) == most:
                break
            if owner in owners or not is_of_use or (is_wasteful and chosen):
                continue
            owners.add(owner)
            chosen.append((owner, pattern, 1))
            for member, pods in pattern.counts:
                left[member] -= pods
        return chosen

    def _settle(self, owner: int, pattern: Pattern, count: int) -> None:
        self._nodes[owner] -= count
        self._restricted.limit_row(owner, self._nodes[owner])
        _subtract(self._pods, pattern, count)
        self._restricted.limit_gangs((0,) * len(self._pods), self._pods)
