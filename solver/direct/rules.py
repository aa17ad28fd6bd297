"""The rules of an allocation as constraints of the direct model, one function each.

`RULES` fixes their names and order. Which devices may serve a request at all
(selectors, taints, what is taken) is not a rule here: only groups that may are in the
model. The judge states every rule again, on its own.
"""

from __future__ import annotations

from collections.abc import Callable

from ortools.sat.python import cp_model

from solver.direct.variables import Lot, Placements, Term


def gangs_are_whole(x: Placements) -> None:
    """All pods of a gang are placed, or none.

    For each member kind m: sum(pods[m, node]) = sum(count(gang, m) * in[gang]).
    """
    for m, lots in enumerate(x.lots_of):
        terms: list[Term] = [(lot.pods, 1) for lot in lots]
        for gang, chosen in x.gangs.items():
            terms.extend((chosen, -pods) for kind, pods in gang.members if kind == m)
        x.model.add(_sum(terms) == 0)


def requests_are_filled(x: Placements) -> None:
    """Each pod gets as many devices for a request as it asks for.

    sum(devices[lot, r, group]) = count(r) * pods[lot].
    Source: DeviceRequest.exactly.count (ExactCount).
    """
    for lot in x.lots:
        for r, request in enumerate(x.member_of(lot).requests):
            serving = lot.serving(r)
            if request.all_devices or request.count == 0 or len(serving) == 1:
                continue
            terms = [term for _, term in serving]
            x.model.add(_sum([*terms, (lot.pods, -request.count)]) == 0)


def devices_are_exclusive(x: Placements) -> None:
    """No device serves two requests.

    For each node and group: sum(devices[lot, r, group]) <= size(group).
    """
    used: dict[tuple[int, int], list[Term]] = {}
    for lot in x.lots:
        for (_, g), term in lot.uses.items():
            used.setdefault((lot.node, g), []).append(term)
    for (node, g), terms in used.items():
        size = x.nodes[node].shape.groups[g].size
        x.model.add(_sum(terms) <= size)


def attributes_match(x: Placements) -> None:
    """All devices of a pod in a constraint's scope have one value.

    Pods choose a value: sum(chosen[lot, c, v]) = pods[lot]; for each request r in
    scope, sum(devices[lot, r, groups with v]) = count(r) * chosen[lot, c, v].
    Source: DeviceConstraint.matchAttribute.
    """
    for lot in x.lots:
        for c, constraint in enumerate(x.member_of(lot).constraints):
            if constraint.distinct or not constraint.requests:
                continue
            values = [v for cc, v in lot.chosen if cc == c]
            terms: list[Term] = [(lot.chosen[c, v], 1) for v in values]
            x.model.add(_sum([*terms, (lot.pods, -1)]) == 0)
            for r in constraint.requests:
                for value in values:
                    _match(x, lot, r, (c, constraint.attribute, value))


def _match(x: Placements, lot: Lot, request: int, choice: tuple[int, int, int]) -> None:
    c, attribute, value = choice
    groups = x.nodes[lot.node].shape.groups
    terms = [t for g, t in lot.serving(request) if groups[g].values[attribute] == value]
    asked = x.member_of(lot).requests[request]
    chosen = lot.chosen[c, value]
    if asked.all_devices:
        if terms:
            x.model.add(_sum([(lot.pods, 1), (chosen, -1)]) == 0)
    else:
        x.model.add(_sum([*terms, (chosen, -asked.count)]) == 0)


def attributes_are_distinct(x: Placements) -> None:
    """No two devices of a pod in a constraint's scope have one value.

    For each lot (of one pod) and value: sum(devices in scope with the value) <= 1.
    Source: DeviceConstraint.distinctAttribute (KEP-5075).
    """
    for lot in x.lots:
        groups = x.nodes[lot.node].shape.groups
        for constraint in x.member_of(lot).constraints:
            if not constraint.distinct:
                continue
            by_value: dict[int, list[Term]] = {}
            for (r, g), term in lot.uses.items():
                if r in constraint.requests:
                    value = groups[g].values[constraint.attribute]
                    by_value.setdefault(value, []).append(term)
            for terms in by_value.values():
                x.model.add(_sum(terms) <= 1)


def single_lots_fill_in_order(x: Placements) -> None:
    """Of equal lots the first are used: no rule of DRA, it only breaks symmetry."""
    for before, after in zip(x.lots, x.lots[1:], strict=False):
        same = (before.kind, before.node) == (after.kind, after.node)
        if after.single and same:
            x.model.add(after.pods <= before.pods)


RULES: tuple[Callable[[Placements], None], ...] = (
    gangs_are_whole,
    requests_are_filled,
    devices_are_exclusive,
    attributes_match,
    attributes_are_distinct,
    single_lots_fill_in_order,
)


def _sum(terms: list[Term]) -> cp_model.LinearExprT:
    """Add terms up; equal variables are merged by CP-SAT."""
    return cp_model.LinearExpr.weighted_sum(
        [variable for variable, _ in terms], [factor for _, factor in terms]
    )
