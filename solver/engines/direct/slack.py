"""The slack value, as an expression over the direct model.

Room is the least of some linear terms and its value is concave in room, so a model
that maximises it needs only upper bounds: room is a whole number that no term is below,
and the part of it that counts more is one that neither room nor the limit is below.
Nodes that the model does not see keep what they have. Where devices draw from counters
the goal is left out: which of them are available is not linear in what others draw.
"""

from __future__ import annotations

from collections import defaultdict
from math import gcd

from solver.engines import cp_model
from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Placements
from solver.kinds.counting import bound_uses
from solver.kinds.demand import ExpectedKind, RequestAlternative
from solver.kinds.slack import count_rooms, value_of_shape
from solver.problem.problem import DEVICE

_INT53, _INT62 = 1 << 53, 1 << 62
"""Objectives are floats in CP-SAT, sums are not."""
Sum = tuple[list[Term], int]
"""Terms and a constant."""


def value_kept(placements: Placements) -> cp_model.LinearExprT | None:
    """Build what is to be maximised: minus the value lost; None: it is left out.

    That is where numbers are too large, or devices draw from counters.
    For each node and expected kind: weight * (size * room + 4 * first), less what it
    was before.
    """
    return _RoomModel(placements).value_kept()


class _RoomModel:
    """Adds the room on each node to a model."""

    def __init__(self, placements: Placements) -> None:
        self._placements = placements
        self._fits = True
        """True if no sum so far could leave 64 bits."""
        self._taken: dict[tuple[int, int], list[Term]] = defaultdict(list)
        """(node, group) -> devices that pods have for themselves."""
        self._consumed: dict[tuple[int, int, int], list[Term]] = defaultdict(list)
        """(node, group, capacity) -> what the shares of pods consume."""
        self._needed: dict[tuple[int, int], list[Term]] = defaultdict(list)
        """(node, resource) -> what pods need."""
        self._shares: dict[tuple[int, int, int], Sum] = {}
        """(node, group, request kind) -> further shares of the devices."""
        self._nodes = dict.fromkeys(lot.node for lot in placements.lots)
        self._add_uses()

    def value_kept(self) -> cp_model.LinearExprT | None:
        """Sum the value kept over nodes and expected kinds; None: it is left out."""
        expected = self._placements.demand.expected
        if any(self._placements.nodes[node].shape.counters for node in self._nodes):
            return None
        terms: list[Term] = []
        value_before = 0
        members = tuple(kind.member for kind in expected)
        for node in self._nodes:
            shape = self._placements.nodes[node].shape
            value_before += value_of_shape(expected, shape)
            for number, most in enumerate(count_rooms(members, shape)):
                terms += self._value_terms(node, number, most)
        if not self._fits or 2 * value_before >= _INT53:
            return None
        return total(terms) - value_before

    def _add_uses(self) -> None:
        """Collect what the pods of the batch take, by what they take it of."""
        for lot in self._placements.lots:
            member = self._placements.member_of(lot)
            shape = self._placements.shape_of(lot)
            for (ask, group), (variable, factor) in lot.uses.items():
                alternative, traits = member.asks[ask], shape.groups[group].traits
                if alternative.admin:
                    continue
                if traits.left is None:
                    self._taken[lot.node, group].append((variable, factor))
                    continue
                for capacity, cost in enumerate(traits.costs[alternative.kind]):
                    term = (variable, factor * cost)
                    self._consumed[lot.node, group, capacity].append(term)
            for resource, need in enumerate(member.needs):
                self._needed[lot.node, resource].append((lot.pods, need))

    def _value_terms(self, node: int, number: int, most: int) -> list[Term]:
        """Weigh the room for a kind on a node, `most` pods."""
        kind = self._placements.demand.expected[number]
        if not most or not kind.weight or not kind.size:
            return []
        model, name = self._placements.model, f"{node},{number}"
        room = model.new_int_var(0, most, f"room[{name}]")
        terms: list[Term] = [(room, kind.weight * kind.size)]
        if kind.more:
            limit = min(DEVICE, most * kind.size)
            first = model.new_int_var(0, limit, f"first[{name}]")
            model.add(first <= kind.size * room)
            terms.append((first, kind.weight * kind.more))
        self._bound_room(node, kind, room)
        return terms

    def _bound_room(self, node: int, kind: ExpectedKind, room: cp_model.IntVar) -> None:
        """Bound the room by all that the batch leaves of a node."""
        member, shape = kind.member, self._placements.nodes[node].shape
        # First by what the node itself has left, as NodeResourcesFit counts.
        needs = zip(member.needs, shape.free, strict=True)
        for resource, (need, free) in enumerate(needs):
            if need and free is not None:
                self._at_most(room, need, ([], free), self._needed[node, resource])
        # Then by the devices of each request.
        for alternative in member.asks:
            groups = range(len(shape.groups))
            uses_left = self._uses_left(node, alternative, groups)
            self._at_most(room, alternative.count, uses_left, [])
        # Then by the devices of each constraint: value by value, summed.
        for constraint in member.constraints:
            scope = [(member.asks[ask], column) for ask, column in constraint.scope]
            values = {
                value
                for group in shape.groups
                for _, column in scope
                for value in group.values[column]
            }
            parts = [
                self._room_with_value(node, value, scope) for value in sorted(values)
            ]
            self._at_most(room, 1, ([(part, 1) for part in parts], 0), [])

    def _room_with_value(
        self, node: int, value: int, scope: list[tuple[RequestAlternative, int]]
    ) -> cp_model.IntVar:
        """Count the pods whose devices have one value in common."""
        groups, bounds = self._placements.nodes[node].shape.groups, []
        sums = []
        for alternative, column in scope:
            having = [
                index
                for index, group in enumerate(groups)
                if value in group.values[column]
            ]
            uses = sum(bound_uses(groups[index], alternative) for index in having)
            bounds.append(uses // alternative.count)
            uses_left = self._uses_left(node, alternative, having)
            sums.append((alternative.count, uses_left))
        model = self._placements.model
        number = len(model.proto.variables)
        part = model.new_int_var(0, min(bounds), f"having[{number}]")
        for count, uses_left in sums:
            self._at_most(part, count, uses_left, [])
        return part

    def _uses_left(
        self, node: int, alternative: RequestAlternative, groups: range | list[int]
    ) -> Sum:
        """Count the uses that are left of some groups' devices."""
        terms, constant = list[Term](), 0
        shape = self._placements.nodes[node].shape
        for group in groups:
            most = bound_uses(shape.groups[group], alternative)
            if not most:
                continue
            if shape.groups[group].is_shareable:
                more, free = self._shares_left(node, group, alternative, most)
            else:
                taken = self._taken[node, group]
                more = [(variable, -factor) for variable, factor in taken]
                free = most
            terms, constant = terms + more, constant + free
        return terms, constant

    def _shares_left(
        self, node: int, group: int, alternative: RequestAlternative, most: int
    ) -> Sum:
        """Count the further shares of a device."""
        key = (node, group, alternative.kind)
        if key not in self._shares:
            traits = self._placements.nodes[node].shape.groups[group].traits
            costs = traits.costs[alternative.kind]
            bounds = [
                (cost, left, self._consumed[node, group, capacity])
                for capacity, (cost, left) in enumerate(
                    zip(costs, traits.left or (), strict=False)
                )
                if cost
            ]
            name = f"shares[{node},{group},{alternative.kind}]"
            shares = self._placements.model.new_int_var(0, most, name)
            for cost, left, consumed in bounds:
                self._at_most(shares, cost, ([], left), consumed)
            self._shares[key] = ([(shares, 1)], 0)
        return self._shares[key]

    def _at_most(
        self, variable: cp_model.IntVar, factor: int, left: Sum, taken: list[Term]
    ) -> None:
        """Bound factor * variable by what is left once something is taken."""
        left_terms, limit = left
        terms: list[Term] = [
            (variable, factor),
            *((var, -amount) for var, amount in left_terms),
            *taken,
        ]
        common = gcd(*(amount for _, amount in terms)) or 1
        terms = [(var, amount // common) for var, amount in terms]
        limit = limit // common
        largest = max(abs(limit), *(abs(amount) for _, amount in terms))
        if largest * (len(terms) + 1) * 4096 > _INT62:
            self._fits = False
            return
        self._placements.model.add(total(terms) <= limit)
