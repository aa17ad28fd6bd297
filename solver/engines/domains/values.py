"""Gangs whose devices have a value in common, narrowed to one: a rail is a domain, too.

Once it is chosen which value that is, each request is for devices with it, and the gang
is one without such a rule. Values are chosen by the shares that gangs take of all
devices that have them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from msgspec import Struct, structs

from contracts.ids import FullyQualifiedName
from solver.engines.domains.packing import WHOLE, ItemKind, Packing
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import POD, GangRules
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.problem.attributes import Element
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem

MOST_VALUES = 256
"""Of an attribute, that are chosen from: those with the most room."""
Ask = tuple[int, int]
"""(member, index of an alternative among all of its pod)."""


class _Alike(Struct, frozen=True):
    """Requests of a gang whose devices have one value in common."""

    gang: int
    column: int
    asks: tuple[Ask, ...]


class Narrowed(Struct, frozen=True):
    """Gangs as they stand, those narrowed that could be; and what it cost."""

    gangs: tuple[GangPart, ...]
    numbers: frozenset[int] = frozenset()
    """Of those that were narrowed."""
    work: float = 0.0


def narrow_to_values(
    problem: Problem, gangs: Sequence[GangPart], *, work_limit: float
) -> Narrowed:
    """Choose a value for each rule that asks for a common one, as far as there is room.

    A gang keeps its rules if it has others between devices of its pods, or if no value
    has room for it.
    """
    demand = Demand(gangs)
    rules = [alike for each in demand.gang_rules for alike in _find_alike(demand, each)]
    if not rules:
        return Narrowed(tuple(gangs))
    room = _count_devices(demand, find_node_kinds(problem, demand.query))
    chosen, work = dict[_Alike, Element](), 0.0
    for column in sorted({alike.column for alike in rules}):
        own = [alike for alike in rules if alike.column == column]
        packing = _ValuePacking(demand, own, room)
        chosen |= packing.run(work_limit - work, problem.parameters.seed)
        work += packing.work
    by_gang = defaultdict[int, list[_Alike]](list)
    for alike in rules:
        by_gang[alike.gang].append(alike)
    narrowed = {
        gang: _narrow(demand, gang, {alike: chosen[alike] for alike in own})
        for gang, own in by_gang.items()
        if all(alike in chosen for alike in own)
    }
    asked = tuple(narrowed.get(number, gang) for number, gang in enumerate(gangs))
    return Narrowed(asked, frozenset(narrowed), work)


def _find_alike(demand: Demand, rules: GangRules) -> tuple[_Alike, ...]:
    """Find what a gang wants alike; nothing where it has other rules about devices.

    Nor where pods that have their place have chosen the value.
    """
    gang = demand.gangs[rules.gang]
    if gang.separated or gang.standing or rules.has_preferences or rules.spread:
        return ()
    member_of = {
        cell.kind: member
        for member, cells in enumerate(demand.cells_of[rules.gang])
        for cell in cells
    }
    found = list[_Alike]()
    for rule in rules.sets:
        columns = {column for _, _, column in rule.uses}
        if rule.distinct or rule.each is not None or len(columns) > 1:
            return ()
        asks = {(member_of[kind], ask) for kind, ask, _ in rule.uses}
        found.append(_Alike(rules.gang, columns.pop(), tuple(sorted(asks))))
    for placed, kinds in rules.placed:
        if placed.column is None:
            continue
        # Pods in groups have values by group; claims are of whole members.
        if not any(t.key == placed and t.kinds == kinds for t in rules.together):
            return ()
        asks = {
            (member_of[kind], ask)
            for kind in kinds
            for ask in range(len(demand.member_kinds[kind].asks))
        }
        found.append(_Alike(rules.gang, placed.column, tuple(sorted(asks))))
    named = [ask for alike in found for ask in alike.asks]
    is_plain = all(
        not demand.query.columns[alike.column].expression for alike in found
    ) and not any(
        ask.all_devices or ask.admin
        for cells in demand.cells_of[rules.gang]
        for ask in demand.member_kinds[cells[0].kind].asks
    )
    return tuple(found) if is_plain and len(named) == len(set(named)) else ()


def _count_devices(
    demand: Demand, kinds: Iterable[NodeKind]
) -> Counter[tuple[int, int, Element]]:
    """Count devices by request kind, column and value."""
    room = Counter[tuple[int, int, Element]]()
    for kind in kinds:
        for group in kind.shape.groups:
            for column, elements in zip(
                demand.query.named, group.elements, strict=True
            ):
                for request in range(len(demand.query.requests)):
                    if len(elements) == 1 and group.mask >> request & 1:
                        devices = group.size * len(kind.nodes)
                        room[request, column, elements[0]] += devices
    return room


class _ValuePacking:
    """Chooses the values of one column; `work` is what it took."""

    def __init__(
        self,
        demand: Demand,
        rules: Sequence[_Alike],
        room: Mapping[tuple[int, int, Element], int],
    ) -> None:
        self._demand = demand
        self._rules = rules
        self._room = room
        column = rules[0].column
        devices = Counter[Element]()
        for (_, each, value), size in room.items():
            if each == column:
                devices[value] += size
        self._values = sorted(devices, key=lambda v: (-devices[v], repr(v)))
        del self._values[MOST_VALUES:]
        self.work = 0.0

    def run(self, work_limit: float, seed: int) -> dict[_Alike, Element]:
        """Choose a value for each rule that finds one with room."""
        if not self._values:
            return {}
        same = defaultdict[tuple[tuple[int, ...], int], list[_Alike]](list)
        for alike in self._rules:
            worth = self._demand.gangs[alike.gang].weight
            same[self._share(alike), worth].append(alike)
        kinds = [
            ItemKind(len(own), worth, shares) for (shares, worth), own in same.items()
        ]
        packing = Packing(kinds, work_limit=work_limit, seed=seed)
        packed = packing.run()
        self.work = packing.work
        queues = [iter(own) for own in same.values()]
        return {
            next(queues[kind]): value
            for value, inside in zip(self._values, packed, strict=True)
            for kind, n in sorted(inside.items())
            for _ in range(n)
        }

    def _share(self, alike: _Alike) -> tuple[int, ...]:
        """Say what a rule takes of each value, by first choices."""
        cells, gang = self._demand.cells_of[alike.gang], self._demand.gangs[alike.gang]
        asked = Counter[int]()
        for member, number in alike.asks:
            ask = self._demand.member_kinds[cells[member][0].kind].asks[number]
            if not ask.rank:
                asked[ask.kind] += ask.count * gang.members[member].count
        return tuple(
            sum(
                devices * WHOLE // room if room else WHOLE + 1
                for request, devices in asked.items()
                for room in (self._room.get((request, alike.column, value), 0),)
            )
            for value in self._values
        )


def _narrow(demand: Demand, gang: int, values: Mapping[_Alike, Element]) -> GangPart:
    """Ask for devices with these values, in place of the rules."""
    by_ask = {
        ask: (FullyQualifiedName(demand.query.columns[alike.column].attribute), value)
        for alike, value in values.items()
        for ask in alike.asks
    }
    part = demand.gangs[gang]
    members = (
        _narrow_member(
            member, {ask: value for (m, ask), value in by_ask.items() if m == number}
        )
        for number, member in enumerate(part.members)
    )
    return structs.replace(
        part,
        members=tuple(members),
        constraints=tuple(c for c in part.constraints if c.scope == POD),
        topology=tuple(rule for rule in part.topology if rule.attribute is None),
    )


def _narrow_member(
    member: MemberPart, values: Mapping[int, tuple[FullyQualifiedName, Element]]
) -> MemberPart:
    numbers = count()
    claims = tuple(
        structs.replace(
            claim,
            requests=tuple(
                structs.replace(
                    request,
                    alternatives=tuple(
                        structs.replace(sub, values=(values[number],))
                        if (number := next(numbers)) in values
                        else sub
                        for sub in request.alternatives
                    ),
                )
                for request in claim.requests
            ),
        )
        for claim in member.claims
    )
    return structs.replace(member, claims=claims)
