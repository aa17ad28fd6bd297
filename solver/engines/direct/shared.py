"""Rules about what devices share: capacity, counters and compatibility groups.

What belongs to a node is summed over the lots of the node; what several nodes see, over
all of them. Admin access takes nothing, and needs nothing to be left (KEP-5018).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import gcd
from typing import NamedTuple

from solver.engines import cp_model
from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.demand import RequestAlternative
from solver.kinds.shapes import GroupShape

_MAX_SUM = 1 << 62
Key = tuple[object, ...]
"""What something is summed for: a device's capacity, or a counter."""
Sums = dict[Key, list[Term]]


def capacity_suffices(placements: Placements) -> None:
    """Shares of a device consume no more of a capacity than it has left.

    For each device that may be shared and capacity: sum(cost * uses) <= left.
    Source: KEP-5075.
    """
    sums: Sums = defaultdict(list)
    left: dict[Key, int] = {}
    for lot in placements.lots:
        for use in _uses_of(placements, lot):
            traits = use.group.traits
            if traits.left is None:
                continue
            for capacity, cost in enumerate(traits.costs[use.ask.kind]):
                key = (*use.device, capacity)
                variable, factor = use.term
                sums[key].append((variable, factor * cost))
                left[key] = traits.left[capacity]
    _limit(placements.model, sums, left)


def counters_suffice(placements: Placements) -> None:
    """Devices draw no more from a counter than is left of it; a shared one once.

    For each counter: sum(draw * devices) <= left.
    Source: KEP-4815.
    """
    charges = _Charges(placements.model)
    left: dict[Key, int] = {}
    for lot in placements.lots:
        counters = placements.shape_of(lot).counters
        for use in _uses_of(placements, lot):
            for number, draw in use.group.traits.draws:
                counter = counters[number]
                key = counter.identity or (lot.node, number)
                left[key] = min(left.get(key, counter.left), counter.left)
                if use.group.is_shareable:
                    charges.add_once(key, lot, use, draw)
                else:
                    variable, factor = use.term
                    charges.sums[key].append((variable, factor * draw))
    _limit(placements.model, charges.sums, left)


class _Charges:
    """What devices draw from counters; a shared device draws once, however often used.

    A variable says whether such a device is used at all: used <= most * charged.
    """

    def __init__(self, model: cp_model.CpModel) -> None:
        self.sums: Sums = defaultdict(list)
        self._model = model
        self._charged: dict[object, cp_model.IntVar] = {}
        self._counted: set[object] = set()

    def add_once(self, key: Key, lot: Lot, use: LotUse, draw: int) -> None:
        """Count a use of a shared device; only its first counts in a sum."""
        charged = self._charged.get(use.device)
        if charged is None:
            name = f"charged{len(self._charged)}"
            charged = self._charged[use.device] = self._model.new_bool_var(name)
        if (use.device, key) not in self._counted:
            self._counted.add((use.device, key))
            self.sums[key].append((charged, draw))
        self._model.add(total([(use.term[0], 1), (charged, -lot.most)]) <= 0)


def compatibility_groups_agree(placements: Placements) -> None:
    """All devices on a counter set have a group in common, or none has any.

    For each counter set one group is chosen; a device is used only if it has it.
    Source: KEP-5963.
    """
    members: dict[object, list[tuple[Lot, Term, tuple[str, ...]]]] = defaultdict(list)
    allowed: dict[object, tuple[str, ...] | None] = {}
    # First collect by counter set who draws from it, and which groups others left.
    for lot in placements.lots:
        sets = placements.shape_of(lot).sets
        for use in _uses_of(placements, lot):
            for number, groups in use.group.traits.groups:
                left, identity = sets[number]
                key: object = identity or (lot.node, number)
                members[key].append((lot, use.term, groups))
                allowed[key] = left
    # Then let each set choose one of them.
    for key, drawing in members.items():
        left = allowed[key]
        picks = {
            name: placements.model.new_bool_var(f"group[{key},{name}]")
            for name in sorted({name for _, _, groups in drawing for name in groups})
            if left is None or name in left
        }
        placements.model.add(total([(pick, 1) for pick in picks.values()]) <= 1)
        for lot, term, groups in drawing:
            most = lot.most * 32
            fits: list[Term] = [
                (picks[name], -most) for name in groups if name in picks
            ]
            placements.model.add(total([(term[0], 1), *fits]) <= 0)


class LotUse(NamedTuple):
    """Devices of one group that serve one ask of a lot."""

    device: Key
    """Who the devices are: what several nodes see is one, wherever it is used."""
    term: Term
    ask: RequestAlternative
    group: GroupShape


def _uses_of(placements: Placements, lot: Lot) -> Iterator[LotUse]:
    """Go through what takes something: not admin access."""
    groups, asks = placements.shape_of(lot).groups, placements.member_of(lot).asks
    for (ask, group), term in lot.uses.items():
        if asks[ask].admin:
            continue
        device = groups[group].identity or (lot.node, group)
        yield LotUse(device, term, asks[ask], groups[group])


def _limit(model: cp_model.CpModel, sums: Sums, left: dict[Key, int]) -> None:
    """Bound each sum; amounts are divided by what they have in common."""
    for key, terms in sums.items():
        amounts, limit = scaled([factor for _, factor in terms], left[key])
        variables = [variable for variable, _ in terms]
        model.add(total(list(zip(variables, amounts, strict=True))) <= limit)


def scaled(amounts: Iterable[int], limit: int) -> tuple[list[int], int]:
    """Divide amounts and their limit until sums fit 64 bits.

    Exact as long as a common divisor does it; beyond that against the request.
    """
    divided = list(amounts)
    common = gcd(*divided) or 1
    divided, limit = [amount // common for amount in divided], limit // common
    while max([abs(limit), *divided], default=0) * (len(divided) + 1) * 4096 > _MAX_SUM:
        divided = [-(-amount // 2) for amount in divided]
        limit //= 2
    return divided, limit
