"""Diving: an answer with fractions becomes whole a few nodes at a time.

Rounded at once, many nodes that are split between patterns lose what each of them was
to give. Here the patterns that come nearest to a whole node are settled, the rest is
relaxed again, and prices look for patterns that suit what pods are left (column
generation as in Sadykov et al., "Primal heuristics for branch and price", 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solver.engines.glop import Program
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.master import SCALE, PatternUse
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.pricing import Pattern, Prices
from solver.engines.pattern.columns.rounding import RelaxedSolution
from solver.stopping import is_stopped

SETTLED = 0.08
"""Share of the nodes left that is settled at a time, where no pattern is whole."""
ROUNDS = 4
"""Times that prices are asked before some nodes are settled."""
PRICED_STEPS = 200_000_000
"""Steps that are looked at in all."""
NODE_COST = 1e-3
"""Of each node used, in devices: so that none is settled that no pod needs."""
WHOLE = 1e-6
"""Numbers that are this close to whole ones are."""


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
        # The rows: nodes of each class, then pods of each member kind.
        self._row_of = {owner: row for row, owner in enumerate(self._nodes)}
        self._program = Program(
            [
                *((None, float(left)) for left in self._nodes.values()),
                *((0.0, None) for _ in pods),
            ]
        )
        # The columns: pods that have a place, by their devices; then patterns.
        for member, wanted in enumerate(pods):
            entries = [(len(self._row_of) + member, -1.0)]
            self._program.add(float(model.devices[member]), entries, float(wanted))
        self._columns: dict[tuple[int, Pattern], None] = {}
        for owner in self._row_of:
            for pattern in patterns_by_class.get(owner, ()):
                self._add(owner, pattern)

    def run(self) -> list[PatternUse]:
        """Settle nodes until no pod can be placed any more."""
        uses: list[PatternUse] = []
        while not is_stopped():
            shares = self._relax()
            settled = self._choose(shares)
            if not settled:
                return uses
            for owner, pattern, count in settled:
                self._settle(owner, pattern, count)
            uses.extend(settled)
        return uses

    def _relax(self) -> list[float]:
        """Say how many nodes use each column in fractions, when prices found more."""
        for number in range(ROUNDS):
            solved = self._program.solve()
            if solved is None:
                return []
            is_last = number == ROUNDS - 1 or self._priced <= 0
            if is_last or not self._price(solved.prices):
                return self._program.read_values()[len(self._pods) :]
        return []

    def _price(self, duals: Sequence[float]) -> bool:
        """Add the best pattern of each class that is left; whether any is new."""
        self._priced -= 1
        members = tuple(
            max(0, round(-dual * SCALE)) for dual in duals[len(self._row_of) :]
        )
        earned, patterns = self._model.pricing.find_best(Prices(members))
        is_any_new = False
        for owner, left in self._nodes.items():
            reduced = earned[owner] - duals[self._row_of[owner]] * SCALE
            if left and reduced > SCALE * NODE_COST:
                is_any_new |= self._add(owner, patterns[owner])
        return is_any_new

    def _add(self, owner: int, pattern: Pattern) -> bool:
        if (owner, pattern) in self._columns or not pattern.steps:
            return False
        self._columns[owner, pattern] = None
        first = len(self._row_of)
        entries = [(first + member, float(pods)) for member, pods in pattern.counts]
        entries.append((self._row_of[owner], 1.0))
        self._program.add(-NODE_COST, entries, None)
        return True

    def _choose(self, shares: Sequence[float]) -> list[PatternUse]:
        """Choose what is settled: all that is whole, else what comes nearest to it."""
        columns = list(zip(self._columns, shares, strict=False))
        whole = [
            (owner, pattern, int(share + WHOLE))
            for (owner, pattern), share in columns
            if share >= 1 - WHOLE
        ]
        if whole:
            return whole
        most = max(1, int(SETTLED * sum(self._nodes.values())))
        by_share = sorted(columns, key=lambda column: -column[1])
        chosen: list[PatternUse] = []
        left = list(self._pods)
        owners: set[int] = set()
        for (owner, pattern), share in by_share:
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
        self._program.limit_row(self._row_of[owner], float(self._nodes[owner]))
        _subtract(self._pods, pattern, count)
        for member, _ in pattern.counts:
            self._program.limit(member, 0.0, float(self._pods[member]))
