"""Gangs whose devices have a value in common, narrowed to one: a rail is a domain, too.

Once it is chosen which value that is, each request is for devices with it, and the gang
is one without such a rule. Gangs are spread over the values; where not all have room,
it is packed which of them go where, by the devices that have a value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from msgspec import Struct, structs

from contracts.ids import FullyQualifiedName, NodeName
from contracts.pods.node_resources import PODS
from solver.engines.goals import Effort
from solver.engines.packing.search import PackingSearch
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind, NodeShape, NodeView
from solver.kinds.topology import POD, GangRules
from solver.problem.attributes import Element
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Parameters, Problem

MOST_VALUES = 256
"""Of an attribute, that are chosen from: those with the most room."""
SHARE = 0.1
"""Of the work for a batch, what may be spent on the values of an attribute."""
ANY = "any"
"""Names the devices that serve any request; those of one go by its number."""
Ask = tuple[int, int]
"""(member, index of an alternative among all of its pod)."""


class _Alike(Struct, frozen=True):
    """Requests of a gang whose devices have one value in common."""

    gang: int
    column: int
    asks: tuple[Ask, ...]


class Narrowed(Struct, frozen=True):
    """Gangs that are asked for more narrowly, by number; and what it cost."""

    gangs: Mapping[int, GangPart] = {}
    effort: Effort = Effort()


def find_narrowable(demand: Demand) -> frozenset[int]:
    """Find the gangs for which values are chosen, if there is room."""
    return frozenset(
        rules.gang for rules in demand.gang_rules if _find_alike(demand, rules)
    )


def narrow_to_values(problem: Problem, gangs: Sequence[GangPart]) -> Narrowed:
    """Choose a value for each rule that asks for a common one, as far as there is room.

    A gang keeps its rules if it has others between devices of its pods, or if no value
    has room for it.
    """
    demand = Demand(gangs)
    rules = [alike for each in demand.gang_rules for alike in _find_alike(demand, each)]
    if not rules:
        return Narrowed()
    kinds = find_node_kinds(problem, demand.query)
    chosen, effort = dict[_Alike, Element](), Effort()
    for column in sorted({alike.column for alike in rules}):
        own = [alike for alike in rules if alike.column == column]
        found, spent = _choose(demand, own, kinds, problem.parameters)
        chosen, effort = chosen | found, effort.plus(spent)
    by_gang = _by_gang(rules)
    narrowed = {
        gang: _narrow(demand, gang, {alike: chosen[alike] for alike in own})
        for gang, own in by_gang.items()
        if all(alike in chosen for alike in own)
    }
    return Narrowed(narrowed, effort)


def without_values(gang: GangPart) -> GangPart:
    """Leave out the rules of a gang about values of devices of several pods."""
    return structs.replace(
        gang,
        constraints=tuple(c for c in gang.constraints if c.scope == POD),
        topology=tuple(rule for rule in gang.topology if rule.attribute is None),
    )


def _by_gang(rules: Iterable[_Alike]) -> dict[int, list[_Alike]]:
    by_gang = defaultdict[int, list[_Alike]](list)
    for alike in rules:
        by_gang[alike.gang].append(alike)
    return by_gang


def _find_alike(demand: Demand, rules: GangRules) -> tuple[_Alike, ...]:
    """Find the sets of devices that a gang wants to have one value in common.

    None where it has other rules about devices, or placed pods have chosen the value.
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
    kinds: Iterable[NodeKind], place: int, requests: Iterable[int]
) -> dict[Element, Counter[str]]:
    """Count the devices with each value that may serve some request kinds, and any."""
    counts = dict[Element, Counter[str]]()
    for kind in kinds:
        for group in kind.shape.groups:
            elements = group.elements[place]
            served = [str(kind) for kind in requests if group.mask >> kind & 1]
            if len(elements) == 1 and served:
                room = counts.setdefault(elements[0], Counter())
                for name in (*served, ANY):
                    room[name] += group.size * len(kind.nodes)
    return counts


def _choose(
    demand: Demand,
    rules: Sequence[_Alike],
    kinds: Iterable[NodeKind],
    parameters: Parameters,
) -> tuple[dict[_Alike, Element], Effort]:
    """Choose a value of one column for each rule of the gangs that find room.

    Where not all do, that is to pack, too: values are nodes that have devices as
    amounts.
    """
    gangs = list(_by_gang(rules).values())
    asked = Demand(_ask_for_room(demand, own) for own in gangs)
    names = [name for name in asked.query.resources if name.isdigit()]
    place = demand.query.named.index(rules[0].column)
    rooms = _count_devices(kinds, place, list(map(int, names)))
    values = sorted(rooms, key=lambda value: (-rooms[value][ANY], repr(value)))
    del values[MOST_VALUES:]
    if not values:
        return {}, Effort()
    spread = _spread_evenly(asked.gangs, [rooms[value] for value in values])
    if spread is not None:
        numbers = zip(gangs, spread, strict=True)
        pairs = (pair for own, to in numbers for pair in zip(own, to, strict=True))
        return {alike: values[number] for alike, number in pairs}, Effort()
    nodes = []
    for number, value in enumerate(values):
        room = {**rooms[value], PODS: None}
        free = tuple(room.get(name, 0) for name in asked.query.resources)
        shape = NodeShape(groups=(), all_free=0, free=free)
        view = NodeView(NodeName(f"{number:09}"), shape, ())
        nodes.append(NodeKind(shape, (view,)))
    limited = structs.replace(parameters, work_limit=parameters.work_limit * SHARE)
    result = PackingSearch(asked, nodes, limited).run()
    chosen = {
        alike: values[int(pod.node)]
        for placement in result.placements
        for alike, (pod,) in zip(gangs[placement.gang], placement.members, strict=True)
    }
    return chosen, result.effort


def _spread_evenly(
    gangs: Sequence[GangPart], rooms: Sequence[Counter[str]]
) -> list[list[int]] | None:
    """Give each member, the largest gang first, the value with most room.

    So nodes with a device of each value are used as a whole. None: not all have room.
    """
    left = [Counter(room) for room in rooms]
    found: list[list[int]] = [[] for _ in gangs]
    sizes = [sum(m.resources.get(ANY, 0) for m in gang.members) for gang in gangs]
    for gang in sorted(range(len(gangs)), key=lambda number: -sizes[number]):
        for member in gangs[gang].members:
            best = max(range(len(left)), key=lambda number: left[number][ANY])
            left[best].subtract(member.resources)
            if min(left[best].values()) < 0:
                return None
            found[gang].append(best)
    return found


def _ask_for_room(demand: Demand, own: Sequence[_Alike]) -> GangPart:
    """Ask for a pod for each rule of a gang: it needs the devices of first choices."""
    gang, members = demand.gangs[own[0].gang], []
    for number, alike in enumerate(own):
        asked = Counter[str]()
        for member, index in alike.asks:
            kind = demand.cells_of[alike.gang][member][0].kind
            ask = demand.member_kinds[kind].asks[index]
            if not ask.rank:
                for name in (str(ask.kind), ANY):
                    asked[name] += ask.count * gang.members[member].count
        members.append(MemberPart(name=str(number), resources=dict(+asked)))
    return GangPart(
        uid=gang.uid,
        name=gang.name,
        priority=gang.priority,
        weight=gang.weight,
        members=tuple(members),
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
    return structs.replace(without_values(part), members=tuple(members))


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
