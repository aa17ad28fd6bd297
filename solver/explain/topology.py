"""Why the rules of a gang across its pods keep it out, counted domain by domain.

By counting alone, as if the gang were alone in the cluster: which domain or value comes
nearest, and how many pods it has room for. Where counting finds room nothing is said:
then others, or several rules together, are in the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.counts import counted, listed
from contracts.even_parts import find_even_parts
from contracts.gang_rules import GangTopology
from solver.explain.pods import describe_alone
from solver.explain.sharing import explain_reach
from solver.explain.values import RoomByName, describe_rooms
from solver.kinds.common_values import CommonValues
from solver.kinds.counting import (
    bound_pods,
    bound_uses,
    bound_uses_together,
    is_counted,
)
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind, NodeShape
from solver.kinds.topology import PREFERRED, SetRule
from solver.problem.attributes import Element
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem


def explain_gang_rules(problem: Problem, gang: GangPart) -> Reason | None:
    """Return the first rule of a gang that leaves too little room; None: none does."""
    if not (gang.topology or gang.constraints or gang.separated):
        return None
    if gang.standing:
        return None  # what its other pods leave is not counted
    demand = Demand((gang,))
    kinds = find_node_kinds(problem, demand.query)
    for number, rule in enumerate(gang.topology):
        if rule.mode != PREFERRED:
            reason = _explain_topology(demand, kinds, number, rule)
            if reason is not None:
                return reason
    return explain_reach(demand, kinds) or _explain_sets(demand, kinds)


def explain_missing_label(
    gang: GangPart, is_labelled: Callable[[str], bool], nodes: int
) -> Reason | None:
    """Return the first topology whose label no node has; None: there is none.

    `is_labelled` says whether any of the `nodes` has a label.
    """
    for number, rule in enumerate(gang.topology):
        if rule.mode == PREFERRED or rule.attribute is not None:
            continue
        if nodes and not is_labelled(rule.key):
            return Reason(
                rule=Rule.GANG_TOPOLOGY,
                field=f"spec.topology[{number}]",
                message=f"none of {counted(nodes, 'node')} has the label {rule.key}, "
                "so there is no domain",
                facts={"nodes": nodes, "domains": 0},
            )
    return None


def explain_together(gang: GangPart) -> Reason | None:
    """Name all rules of a gang as being in the way together; None: it has none."""
    required = [rule.key for rule in gang.topology if rule.mode != PREFERRED]
    compared = [c.match_attribute or c.distinct_attribute for c in gang.constraints]
    names = dict.fromkeys(filter(None, [*required, *compared]))
    if not names:
        return None
    message = f"{describe_alone(gang.pods)} by the gang's rules for {', '.join(names)}"
    if gang.standing:
        message += f" beside its {counted(len(gang.standing), 'placed pod')}"
    rule = Rule.GANG_TOPOLOGY if required else Rule.CONSTRAINT
    return Reason(rule=rule, message=message, facts={"pods": gang.pods})


def _explain_topology(
    demand: Demand, kinds: tuple[NodeKind, ...], number: int, rule: GangTopology
) -> Reason | None:
    """Compare the room in the domains of a key with what one rule asks for."""
    rooms = [
        (member.count, _count_by_domain(demand, kinds, rule, cells[0].kind))
        for index, (member, cells) in enumerate(
            zip(demand.gangs[0].members, demand.cells_of[0], strict=True)
        )
        if index not in demand.gangs[0].claim_members and rule.is_about(member.name)
    ]
    if rule.is_even:
        return _explain_even(rooms, number, rule)
    pods = sum(count for count, _ in rooms)
    size, most = rule.size, rule.max_per_domain
    if size is not None:
        asked = sum(-(-count // size) for count, _ in rooms)
        by_domain = _add_up((count, room, size) for count, room in rooms)
        found = sum(by_domain.values())
        whole = counted(asked, f"group of {size}", f"groups of {size}")
        wants = f"each of its {whole} must be in one domain"
    elif most is not None:
        asked, whole = pods, counted(pods, "pod")
        everything = _add_up((count, room, 1) for count, room in rooms)
        by_domain = {domain: min(room, most) for domain, room in everything.items()}
        found = sum(by_domain.values())
        wants = f"at most {most} of its {whole} may be in one domain"
    else:
        asked, whole = pods, counted(pods, "pod")
        by_domain = _add_up((count, room, 1) for count, room in rooms)
        found = max(by_domain.values(), default=0)
        wants = f"its {whole} must be in one domain"
    if found >= asked:
        return None
    return Reason(
        rule=Rule.GANG_TOPOLOGY,
        field=f"spec.topology[{number}]",
        message=f"{wants} of {rule.key}; {describe_rooms(by_domain, whole)}",
        facts={"asked": asked, "room": found, "domains": len(by_domain)},
    )


def _explain_even(
    rooms: Iterable[tuple[int, RoomByName]], number: int, rule: GangTopology
) -> Reason | None:
    """Explain the first member of which no division has a domain for each part."""
    for count, by_domain in rooms:
        nearest = find_even_parts(count, by_domain.values(), rule.max_per_domain)
        if nearest.found < nearest.parts:
            return Reason(
                rule=Rule.GANG_TOPOLOGY,
                field=f"spec.topology[{number}]",
                message=f"{nearest.describe(rule.key)}; "
                f"{describe_rooms(by_domain, counted(count, 'pod'))}",
                facts={
                    "asked": nearest.parts,
                    "room": nearest.found,
                    "domains": len(by_domain),
                },
            )
    return None


def _count_by_domain(
    demand: Demand, kinds: Iterable[NodeKind], rule: GangTopology, number: int
) -> RoomByName:
    """Count the pods of a kind that the nodes, or devices, of each domain can hold."""
    member = demand.member_kinds[number]
    if rule.attribute is not None:
        column = demand.query.column_of_attribute(rule.attribute)
        scope = [(ask, column) for ask in range(len(member.asks))]
        return _count_by_value(demand, kinds, number, scope, may_lack=True)
    rooms: RoomByName = Counter[object]()
    label = demand.query.labels.index(rule.key)
    # Whose cell it is does not matter, and what was counted before is remembered.
    member = structs.replace(member, cell=None)
    for kind in kinds:
        domain = kind.shape.domains[label]
        room = bound_pods(member, kind.shape)
        if domain is not None and room:
            rooms[domain] = rooms.get(domain, 0) + room * len(kind.nodes)
    return rooms


def _add_up(rooms: Iterable[tuple[int, RoomByName, int]]) -> RoomByName:
    """Add up groups over members: (pods, their room by domain, pods of a group)."""
    total: RoomByName = Counter[object]()
    for count, by_domain, size in rooms:
        for domain, room in by_domain.items():
            # The last group may be smaller than the others.
            groups = min(room, count) // size
            groups += bool(min(room, count) % size >= (count % size or size))
            total[domain] = total.get(domain, 0) + groups
    return total


def _explain_sets(demand: Demand, kinds: tuple[NodeKind, ...]) -> Reason | None:
    """Explain the first constraint whose values are too few."""
    for rule in demand.gang_rules[0].sets if demand.gang_rules else ():
        if rule.each is not None:
            continue
        explain = _explain_distinct if rule.distinct else _explain_match
        reason = explain(demand, kinds, rule)
        if reason is not None:
            return reason
    reason = _explain_common(demand, kinds)
    if reason is not None:
        return reason
    for alike in _list_alike(demand):
        reason = _explain_alike(demand, kinds, alike)
        if reason is not None:
            return reason
    return None


def _explain_match(
    demand: Demand, kinds: tuple[NodeKind, ...], rule: SetRule
) -> Reason | None:
    """Compare the pods that have room on devices of one value with those asked for."""
    rooms: RoomByName = Counter[object]()
    asked = sum(demand.pods[kind] for kind in {kind for kind, _, _ in rule.uses})
    for number in {kind for kind, _, _ in rule.uses}:
        scope = [(ask, col) for kind, ask, col in rule.uses if kind == number]
        by_value = _count_by_value(demand, kinds, number, scope)
        for value, room in by_value.items():
            rooms[value] = rooms.get(value, 0) + min(room, demand.pods[number])
    found = max(rooms.values(), default=0)
    if found >= asked:
        return None
    name = demand.query.columns[rule.uses[0][2]].attribute
    return Reason(
        rule=Rule.CONSTRAINT,
        field="spec.constraints",
        message=f"devices of its {counted(asked, 'pod')} must have one value of "
        f"{name}; {describe_rooms(rooms, counted(asked, 'pod'))}",
        facts={"asked": asked, "room": found, "values": len(rooms)},
    )


def _explain_common(demand: Demand, kinds: tuple[NodeKind, ...]) -> Reason | None:
    """Name the first constraints that values meet one by one, but not together."""
    nodes = Counter[NodeShape]()
    for kind in kinds:
        nodes[kind.shape] += len(kind.nodes)
    for rules in demand.gang_rules:
        unserved = CommonValues(demand, nodes).find_unserved(rules)
        if unserved is None:
            continue
        columns = demand.query.columns
        names = [columns[each.uses[0][2]].attribute for each in unserved]
        pods = counted(sum(c.least for own in demand.cells_of[0] for c in own), "pod")
        return Reason(
            rule=Rule.CONSTRAINT,
            field="spec.constraints",
            message=f"no values of {listed(names)} together have devices for its "
            f"{pods}",
            facts={"constraints": len(unserved)},
        )
    return None


class _ComparedPods(Struct, frozen=True):
    """What constraints want of each pod of a kind: a value of one attribute each."""

    attribute: str
    member: int
    """Member kind."""
    asks: tuple[tuple[tuple[int, int], ...], ...]
    """By constraint: (ask, column); no ask is in two of them."""


def _list_alike(demand: Demand) -> Iterator[_ComparedPods]:
    """Group the constraints on one attribute, for each kind of pods in several."""
    found: dict[tuple[str, int], list[tuple[tuple[int, int], ...]]] = {}
    for rule in demand.gang_rules[0].sets if demand.gang_rules else ():
        if rule.each is not None or rule.distinct:
            continue
        attribute = demand.query.columns[rule.uses[0][2]].attribute
        for number in sorted({kind for kind, _, _ in rule.uses}):
            known = found.setdefault((attribute, number), [])
            seen = {ask for scope in known for ask, _ in scope}
            member = demand.member_kinds[number]
            scope = [(ask, col) for kind, ask, col in rule.uses if kind == number]
            counts = [(a, c) for a, c in scope if _is_exclusive(member, a)]
            if counts and not seen & {ask for ask, _ in scope}:
                known.append(tuple(counts))
    for (attribute, number), asks in found.items():
        if len(asks) > 1:
            yield _ComparedPods(attribute=attribute, member=number, asks=tuple(asks))


def _is_exclusive(member: MemberKind, ask: int) -> bool:
    """True if each pod takes that many devices, or shares, for an ask."""
    return is_counted(member, ask) and not member.asks[ask].admin


def _explain_alike(
    demand: Demand, kinds: tuple[NodeKind, ...], alike: _ComparedPods
) -> Reason | None:
    """Compare the constraints on one attribute with those that values have room for.

    A value has room for as many as it has devices for, in each pod of the kind.
    """
    member, pods = demand.member_kinds[alike.member], demand.pods[alike.member]
    needs = sorted(sum(member.asks[a].count for a, _ in asks) for asks in alike.asks)
    scope = [pair for asks in alike.asks for pair in asks]
    positions = {demand.query.named.index(column) for _, column in scope}
    serving = {member.asks[ask].kind for ask, _ in scope}
    rooms = Counter[object]()
    for most in range(1, len(needs) + 1):
        by_value = Counter[object]()
        for kind in kinds:
            bound = bound_pods(member, kind.shape)
            for value in _list_values(kind.shape, positions) if bound else ():
                uses = sum(
                    bound_uses_together(group, serving)
                    for group in kind.shape.groups
                    if any(value in group.elements[each] for each in positions)
                )
                room = min(bound, uses // sum(needs[:most]))
                by_value[value[1]] += room * len(kind.nodes)
        rooms.update(value for value, room in by_value.items() if room >= pods)
    found, asked = rooms.total(), len(needs)
    if found >= asked:
        return None
    named = ", ".join(str(value) for value in sorted(rooms, key=repr))
    return Reason(
        rule=Rule.CONSTRAINT,
        field="spec.constraints",
        message=f"{asked} constraints each need a value of {alike.attribute} that "
        f"its {counted(pods, 'pod')} can have in common; there is one for at most "
        f"{found} of {asked}" + (f" ({named})" if named else ""),
        facts={"asked": asked, "room": found, "values": len(rooms)},
    )


def _explain_distinct(
    demand: Demand, kinds: tuple[NodeKind, ...], rule: SetRule
) -> Reason | None:
    """Compare the values that devices have with the devices that must differ in it."""
    asked, values = 0, set[Element]()
    for number, ask, column in rule.uses:
        member = demand.member_kinds[number]
        if is_counted(member, ask):
            asked += demand.pods[number] * member.asks[ask].count
        position = demand.query.named.index(column)
        values.update(
            value
            for kind in kinds
            for group in kind.shape.groups
            if bound_uses(group, member.asks[ask])
            for value in group.elements[position]
        )
    if len(values) >= asked:
        return None
    name = demand.query.columns[rule.uses[0][2]].attribute
    return Reason(
        rule=Rule.CONSTRAINT,
        field="spec.constraints",
        message=f"its {counted(asked, 'device')} must all differ in {name}; the "
        f"devices that it may use have {counted(len(values), 'value')}",
        facts={"asked": asked, "values": len(values)},
    )


def _count_by_value(
    demand: Demand,
    kinds: Iterable[NodeKind],
    number: int,
    scope: list[tuple[int, int]],
    *,
    may_lack: bool = False,
) -> RoomByName:
    """Count the pods of a kind whose devices there are of each value, by counting.

    `may_lack`: devices without any value go with each.
    """
    member, rooms = demand.member_kinds[number], Counter[object]()
    sole = [
        (ask, demand.query.named.index(column))
        for ask, column in scope
        if is_counted(member, ask)
    ]
    positions = {demand.query.named.index(column) for _, column in scope}
    for kind in kinds:
        most = bound_pods(member, kind.shape)
        for value in _list_values(kind.shape, positions) if most else ():
            room = [
                sum(
                    bound_uses(group, member.asks[ask])
                    for group in kind.shape.groups
                    if value in group.elements[position]
                    or (may_lack and not group.elements[position])
                )
                // member.asks[ask].count
                for ask, position in sole
            ]
            rooms[value[1]] += min([most, *room]) * len(kind.nodes)
    return rooms


def _list_values(shape: NodeShape, positions: set[int]) -> set[Element]:
    return {
        value
        for group in shape.groups
        for position in positions
        for value in group.elements[position]
    }
