"""The value of what is left over (tier 3), as an expression over the direct model.

Room is the least of some linear terms and its value is concave in room, so a model
that maximises it needs only upper bounds: room is a whole number that no term is below,
and the part of it that counts more is one that neither room nor the limit is below.
Nodes that the model does not see keep what they have.
"""

from __future__ import annotations

from collections import defaultdict
from math import gcd

from ortools.sat.python import cp_model

from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Placements
from solver.kinds.counting import uses_at_most
from solver.kinds.demand import ExpectedKind, LocalAsk
from solver.kinds.slack import (
    FIRST,
    MORE,
    room_on,
    value_of_shape,
)

_INT53, _INT62 = 1 << 53, 1 << 62
"""Objectives are floats in CP-SAT, sums are not."""
Sum = tuple[list[Term], int]
"""Terms and a constant."""


def value_kept(x: Placements) -> cp_model.LinearExprT | None:
    """Say what is to be maximised: minus the value lost; None: numbers are too large.

    For each node and expected kind: weight * (size * room + 2 * first), less what it
    was before.
    """
    return _Leftover(x).kept()


class _Leftover:
    """Adds the room on each node to a model."""

    def __init__(self, x: Placements) -> None:
        self._x = x
        self._fits = True
        self._taken: dict[tuple[int, int], list[Term]] = defaultdict(list)
        """(node, group) -> devices that pods have for themselves."""
        self._consumed: dict[tuple[int, int, int], list[Term]] = defaultdict(list)
        """(node, group, capacity) -> what the shares of pods consume."""
        self._needed: dict[tuple[int, int], list[Term]] = defaultdict(list)
        """(node, resource) -> what pods need."""
        self._shares: dict[tuple[int, int, int], Sum] = {}
        self._nodes = dict.fromkeys(lot.node for lot in x.lots)
        self._add_uses()

    def kept(self) -> cp_model.LinearExprT | None:
        """Sum the value kept over all nodes and expected kinds."""
        expected, terms, before = self._x.demand.expected, list[Term](), 0
        for node in self._nodes:
            before += value_of_shape(expected, self._x.nodes[node].shape)
            for number, kind in enumerate(expected):
                terms += self._value(node, number, kind)
        if not self._fits or 2 * before >= _INT53:
            return None
        return total(terms) - before

    def _add_uses(self) -> None:
        for lot in self._x.lots:
            member, shape = self._x.member_of(lot), self._x.shape_of(lot)
            for (a, g), (variable, factor) in lot.uses.items():
                ask, traits = member.asks[a], shape.groups[g].traits
                if ask.admin:
                    continue
                if traits.left is None:
                    self._taken[lot.node, g].append((variable, factor))
                    continue
                for i, cost in enumerate(traits.costs[ask.kind]):
                    term = (variable, factor * cost)
                    self._consumed[lot.node, g, i].append(term)
            for r, need in enumerate(member.needs):
                self._needed[lot.node, r].append((lot.pods, need))

    def _value(self, node: int, number: int, kind: ExpectedKind) -> list[Term]:
        """Weigh the room for a kind on a node."""
        most = room_on(kind.member, self._x.nodes[node].shape)
        if not most or not kind.weight or not kind.size:
            return []
        model, name = self._x.model, f"{node},{number}"
        room = model.new_int_var(0, most, f"room[{name}]")
        limit = min(FIRST, most * kind.size)
        first = model.new_int_var(0, limit, f"first[{name}]")
        model.add(first <= kind.size * room)
        self._bound(node, kind, room)
        return [(room, kind.weight * kind.size), (first, kind.weight * MORE)]

    def _bound(self, node: int, kind: ExpectedKind, room: cp_model.IntVar) -> None:
        member, shape = kind.member, self._x.nodes[node].shape
        for r, (need, free) in enumerate(zip(member.needs, shape.free, strict=True)):
            if need and free is not None:
                self._at_most(room, need, ([], free), self._needed[node, r])
        for ask in member.asks:
            groups = range(len(shape.groups))
            self._at_most(room, ask.count, self._uses(node, ask, groups), [])
        for constraint in member.constraints:
            scope = [(member.asks[a], column) for a, column in constraint.scope]
            values = {
                v for g in shape.groups for _, column in scope for v in g.values[column]
            }
            parts = [self._having(node, value, scope) for value in sorted(values)]
            self._at_most(room, 1, ([(part, 1) for part in parts], 0), [])

    def _having(
        self, node: int, value: int, scope: list[tuple[LocalAsk, int]]
    ) -> cp_model.IntVar:
        """Count the pods whose devices have one value in common."""
        groups, most = self._x.nodes[node].shape.groups, []
        sums = []
        for ask, column in scope:
            own = [g for g, group in enumerate(groups) if value in group.values[column]]
            most.append(sum(uses_at_most(groups[g], ask) for g in own) // ask.count)
            sums.append((ask.count, self._uses(node, ask, own)))
        number = len(self._x.model.proto.variables)
        part = self._x.model.new_int_var(0, min(most), f"having[{number}]")
        for count, left in sums:
            self._at_most(part, count, left, [])
        return part

    def _uses(self, node: int, ask: LocalAsk, groups: range | list[int]) -> Sum:
        """Count the uses that are left of some groups' devices."""
        terms, left = list[Term](), 0
        shape = self._x.nodes[node].shape
        for g in groups:
            most = uses_at_most(shape.groups[g], ask)
            if not most:
                continue
            if shape.groups[g].is_shareable:
                more, constant = self._shares_of(node, g, ask, most)
            else:
                more = [(v, -f) for v, f in self._taken[node, g]]
                constant = most
            terms, left = terms + more, left + constant
        return terms, left

    def _shares_of(self, node: int, g: int, ask: LocalAsk, most: int) -> Sum:
        """Count the further shares of a device."""
        key = (node, g, ask.kind)
        if key not in self._shares:
            traits = self._x.nodes[node].shape.groups[g].traits
            bounds = [
                (cost, left, self._consumed[node, g, i])
                for i, (cost, left) in enumerate(
                    zip(traits.costs[ask.kind], traits.left or (), strict=False)
                )
                if cost
            ]
            name = f"shares[{node},{g},{ask.kind}]"
            shares = self._x.model.new_int_var(0, most, name)
            for cost, left, consumed in bounds:
                self._at_most(shares, cost, ([], left), consumed)
            self._shares[key] = ([(shares, 1)], 0)
        return self._shares[key]

    def _at_most(
        self, variable: cp_model.IntVar, factor: int, left: Sum, taken: list[Term]
    ) -> None:
        """Bound factor * variable by what is left once something is taken."""
        terms, limit = left
        listed: list[Term] = [(variable, factor), *((v, -f) for v, f in terms)]
        listed += taken
        common = gcd(*(f for _, f in listed)) or 1
        listed, limit = [(v, f // common) for v, f in listed], limit // common
        largest = max(abs(limit), *(abs(f) for _, f in listed))
        if largest * (len(listed) + 1) * 4096 > _INT62:
            self._fits = False
            return
        self._x.model.add(total(listed) <= limit)
