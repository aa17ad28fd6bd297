"""Rules about what devices share: capacity, counters and compatibility groups.

What belongs to a node is summed over the lots of the node; what several nodes see, over
all of them. Admin access takes nothing from others (KEP-5018), but a pod's own devices,
those with admin access included, must fit beside what others have: kube-scheduler
checks that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import gcd

from ortools.sat.python import cp_model

from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.nodes import GroupShape

_INT64 = 1 << 62
Sums = dict[object, list[Term]]
"""Terms by what they are summed for."""


def capacity_suffices(x: Placements) -> None:
    """Shares of a device consume no more of a capacity than it has left.

    For each device that may be shared and capacity: sum(cost * uses) <= left.
    Source: KEP-5075.
    """
    sums: Sums = defaultdict(list)
    left: dict[object, int] = {}
    for lot in x.lots:
        for key, admin, term, (a, group) in _uses(x, lot):
            if group.traits.left is None:
                continue
            cost = group.traits.costs[x.member_of(lot).asks[a].kind]
            for i, amount in enumerate(cost):
                for place in _places(x, lot, (*key, i), admin=admin):
                    sums[place].append((term[0], term[1] * amount))
                    left[place] = group.traits.left[i]
    _limit(x.model, sums, left)


def counters_suffice(x: Placements) -> None:
    """Devices draw no more from a counter than is left of it; a shared one once.

    For each counter: sum(draw * devices) <= left.
    Source: KEP-4815.
    """
    sums: Sums = defaultdict(list)
    left: dict[object, int] = {}
    charged: dict[object, cp_model.IntVar] = {}
    counted: set[object] = set()
    for lot in x.lots:
        counters = x.shape_of(lot).counters
        for key, admin, term, (_, group) in _uses(x, lot):
            for number, amount in group.traits.draws:
                counter = counters[number]
                name = (counter.identity or (lot.node, number),)
                for place in _places(x, lot, name, admin=admin):
                    left[place] = min(left.get(place, counter.left), counter.left)
                    if not group.is_shareable:
                        sums[place].append((term[0], term[1] * amount))
                        continue
                    once = (place[1:], key)
                    if once not in charged:
                        charged[once] = x.model.new_bool_var(f"charged{len(charged)}")
                    if (once, place) not in counted:
                        counted.add((once, place))
                        sums[place].append((charged[once], amount))
                    x.model.add(total([(term[0], 1), (charged[once], -lot.most)]) <= 0)
    _limit(x.model, sums, left)


def compatibility_groups_agree(x: Placements) -> None:
    """All devices on a counter set have a group in common, or none has any.

    For each counter set one group is chosen; a device is used only if it has it.
    Source: KEP-5963.
    """
    uses: dict[object, list[tuple[Lot, Term, tuple[str, ...]]]] = defaultdict(list)
    allowed: dict[object, tuple[str, ...] | None] = {}
    for lot in x.lots:
        sets = x.shape_of(lot).sets
        for _, _, term, (_, group) in _uses(x, lot):
            for number, mine in group.traits.groups:
                left, identity = sets[number]
                key: object = identity or (lot.node, number)
                uses[key].append((lot, term, mine))
                allowed[key] = left
    for key, items in uses.items():
        names = sorted({name for _, _, mine in items for name in mine})
        left = allowed[key]
        chosen = {
            name: x.model.new_bool_var(f"group[{key},{name}]")
            for name in names
            if left is None or name in left
        }
        x.model.add(total([(variable, 1) for variable in chosen.values()]) <= 1)
        for lot, term, mine in items:
            most = lot.most * 32
            fits: list[Term] = [(chosen[n], -most) for n in mine if n in chosen]
            x.model.add(total([(term[0], 1), *fits]) <= 0)


Use = tuple[tuple[object, ...], bool, Term, tuple[int, GroupShape]]
"""(who the device is, admin access, devices, (ask, group))."""


def _uses(x: Placements, lot: Lot) -> Iterator[Use]:
    groups, asks = x.shape_of(lot).groups, x.member_of(lot).asks
    for (a, g), term in lot.uses.items():
        key = groups[g].identity or (lot.node, g)
        yield key, asks[a].admin, term, (a, groups[g])


def _places(
    x: Placements, lot: Lot, key: object, *, admin: bool
) -> Iterator[tuple[object, ...]]:
    """Say for which sums a use counts: the batch's, and that of a pod with access."""
    if not admin:
        yield (key,)
    if any(ask.admin for ask in x.member_of(lot).asks):
        yield (key, id(lot))


def _limit(model: cp_model.CpModel, sums: Sums, left: dict[object, int]) -> None:
    """Bound each sum; amounts are divided by what they have in common."""
    for key, terms in sums.items():
        amounts, limit = scaled([factor for _, factor in terms], left[key])
        variables = [variable for variable, _ in terms]
        model.add(total(list(zip(variables, amounts, strict=True))) <= limit)


def scaled(amounts: Iterable[int], limit: int) -> tuple[list[int], int]:
    """Divide amounts and their limit until sums fit 64 bits.

    Exact as long as a common divisor does it; beyond that against the request.
    """
    listed = list(amounts)
    common = gcd(*listed) or 1
    listed, limit = [amount // common for amount in listed], limit // common
    while max([abs(limit), *listed], default=0) * (len(listed) + 1) * 4096 > _INT64:
        listed = [-(-amount // 2) for amount in listed]
        limit //= 2
    return listed, limit
