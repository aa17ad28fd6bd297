"""The rules of an allocation as constraints of the direct model, one function each.

`RULES` fixes their names and order. Which devices may serve a request at all
(selectors, taints, what is taken) is not a rule here: only groups that may are in the
model. The judge states every rule again, on its own. Rules about counters, shares and
compatibility groups, which may reach over several nodes, are in `shared.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ortools.sat.python import cp_model

from contracts.allocation import MAX_DEVICES
from solver.engines.cpsat import Term, total
from solver.engines.direct.shared import (
    capacity_suffices,
    compatibility_groups_agree,
    counters_suffice,
    scaled,
)
from solver.engines.direct.variables import Lot, Placements, may_exceed
from solver.kinds.demand import LocalConstraint


def gangs_are_whole(x: Placements) -> None:
    """All pods of a gang are placed, or none.

    For each member kind m: sum(pods[m, node]) = sum(count(gang, m) * in[gang]).
    """
    for m, lots in enumerate(x.lots_of):
        terms: list[Term] = [(lot.pods, 1) for lot in lots]
        for gang, chosen in x.gangs.items():
            terms.extend((chosen, -pods) for kind, pods in gang.members if kind == m)
        x.model.add(total(terms) == 0)


def one_alternative_is_chosen(x: Placements) -> None:
    """Each pod takes one alternative of each request.

    sum(picks[lot, a] for a of the request) = pods[lot].
    Source: DeviceRequest.firstAvailable (KEP-4816).
    """
    for lot in x.lots:
        member = x.member_of(lot)
        for request in range(member.requests):
            asks = member.alternatives(request)
            possible = [a for a in asks if a in lot.picks]
            if len(asks) > 1 or not possible:
                terms: list[Term] = [(lot.picks[a], 1) for a in possible]
                x.model.add(total([*terms, (lot.pods, -1)]) == 0)


def requests_are_filled(x: Placements) -> None:
    """Each pod gets as many devices for a request as it asks for.

    sum(uses[lot, a, group]) = count(a) * picks[lot, a]; of a device that may be shared
    each pod gets one share at most.
    Source: DeviceRequest.exactly.count (ExactCount).
    """
    for lot in x.lots:
        member, shape = x.member_of(lot), x.shape_of(lot)
        for a, pick in lot.picks.items():
            ask, serving = member.asks[a], lot.serving(a)
            if ask.all_devices or ask.count == 0:
                continue
            for g, term in serving:
                if shape.groups[g].is_shareable:
                    x.model.add(total([term, (pick, -1)]) <= 0)
            if len(serving) != 1 or serving[0][1][0] is not pick:
                terms = [term for _, term in serving]
                x.model.add(total([*terms, (pick, -ask.count)]) == 0)


def devices_are_exclusive(x: Placements) -> None:
    """No device that cannot be shared serves two requests.

    For each node and group: sum(uses[lot, a, group]) <= size(group); of devices that
    several nodes see, over all nodes. Admin access takes nothing (KEP-5018).
    """
    used: dict[object, list[Term]] = {}
    sizes: dict[object, int] = {}
    for lot in x.lots:
        asks = x.member_of(lot).asks
        for (a, g), term in lot.uses.items():
            group = x.shape_of(lot).groups[g]
            if not group.is_shareable and not asks[a].admin:
                key: object = group.identity or (lot.node, g)
                used.setdefault(key, []).append(term)
                sizes[key] = group.size
    for key, terms in used.items():
        x.model.add(total(terms) <= sizes[key])


def admin_access_comes_last(x: Placements) -> None:
    """With admin access a claim has a device once, and nobody after it has it.

    For each lot (of one pod) and device: at most one use in a claim; no use for a
    request that follows one with admin access.
    Source: KEP-5018; the order is that of kube-scheduler's search.
    """
    for lot in x.lots:
        asks = x.member_of(lot).asks
        if not any(ask.admin for ask in asks):
            continue
        by_group: dict[int, list[tuple[int, Term]]] = {}
        for (a, g), term in lot.uses.items():
            if not x.shape_of(lot).groups[g].is_shareable:
                by_group.setdefault(g, []).append((a, term))
        for uses in by_group.values():
            for a, first in uses:
                if asks[a].admin:
                    x.model.add(total([first]) <= 1)
                for b, second in uses:
                    same_claim = asks[a].claim == asks[b].claim
                    late = asks[a].admin and asks[a].request < asks[b].request
                    if asks[a].request < asks[b].request and (
                        same_claim or (late and not asks[b].admin)
                    ):
                        x.model.add(total([first, second]) <= 1)


def claims_stay_within_limit(x: Placements) -> None:
    """A claim has at most 32 devices (DRA: AllocationResultsMaxSize)."""
    for lot in x.lots:
        member = x.member_of(lot)
        if not lot.single or not may_exceed(member, x.shape_of(lot)):
            continue
        for claim in range(len(member.claims)):
            terms = [
                term
                for (a, _), term in lot.uses.items()
                if member.asks[a].claim == claim
            ]
            x.model.add(total(terms) <= MAX_DEVICES)


def node_resources_suffice(x: Placements) -> None:
    """The pods on a node need no more of a resource than it has left.

    For each node and resource: sum(need * pods[lot]) <= free.
    Source: kube-scheduler's NodeResourcesFit.
    """
    lots: dict[int, list[Lot]] = {}
    for lot in x.lots:
        lots.setdefault(lot.node, []).append(lot)
    for found in lots.values():
        for r, free in enumerate(x.shape_of(found[0]).free):
            needs = [(lot, x.member_of(lot).needs[r]) for lot in found]
            if free is None or sum(lot.most * need for lot, need in needs) <= free:
                continue
            amounts, limit = scaled([need for _, need in needs], free)
            pods = [lot.pods for lot in found]
            x.model.add(total(list(zip(pods, amounts, strict=True))) <= limit)


def attributes_match(x: Placements) -> None:
    """All devices of a pod in a constraint's scope have one value.

    Pods choose a value: sum(chosen[lot, c, v]) = pods[lot], and their devices have it.
    Source: DeviceConstraint.matchAttribute; lists are KEP-5491.
    """
    for lot in x.lots:
        for c, constraint in enumerate(x.member_of(lot).constraints):
            if constraint.distinct:
                continue
            chosen = {v: var for (cc, v), var in lot.chosen.items() if cc == c}
            terms: list[Term] = [(variable, 1) for variable in chosen.values()]
            if lot.single:
                x.model.add(total(terms) <= 1)
                _match_one_pod(x, lot, constraint, chosen)
            else:
                x.model.add(total([*terms, (lot.pods, -1)]) == 0)
                _match_pods(x, lot, constraint, chosen)


def _match_one_pod(
    x: Placements,
    lot: Lot,
    constraint: LocalConstraint,
    chosen: dict[int, cp_model.IntVar],
) -> None:
    """A device is used only if its values include the chosen one."""
    columns, groups = dict(constraint.scope), x.shape_of(lot).groups
    for (a, g), (variable, factor) in lot.uses.items():
        if a in columns:
            most = MAX_DEVICES if factor == 1 else 1
            terms: list[Term] = [
                (chosen[v], -most) for v in groups[g].values[columns[a]]
            ]
            x.model.add(total([(variable, 1), *terms]) <= 0)


def _match_pods(
    x: Placements,
    lot: Lot,
    constraint: LocalConstraint,
    chosen: dict[int, cp_model.IntVar],
) -> None:
    """Of each value as many devices are used as the pods that chose it ask for."""
    groups = x.shape_of(lot).groups
    for a, column in constraint.scope:
        ask = x.member_of(lot).asks[a]
        for value, variable in chosen.items():
            terms = [
                t for g, t in lot.serving(a) if groups[g].values[column] == (value,)
            ]
            if not ask.all_devices:
                x.model.add(total([*terms, (variable, -ask.count)]) == 0)
            elif terms:
                x.model.add(total([(lot.pods, 1), (variable, -1)]) == 0)


def attributes_are_distinct(x: Placements) -> None:
    """No two devices of a pod in a constraint's scope have a value in common.

    For each lot (of one pod) and value: sum(uses in scope with the value) <= 1.
    Source: DeviceConstraint.distinctAttribute (KEP-5075).
    """
    for lot in x.lots:
        groups = x.shape_of(lot).groups
        for constraint in x.member_of(lot).constraints:
            if not constraint.distinct:
                continue
            columns = dict(constraint.scope)
            by_value: dict[int, list[Term]] = {}
            for (a, g), term in lot.uses.items():
                for value in groups[g].values[columns[a]] if a in columns else ():
                    by_value.setdefault(value, []).append(term)
            for terms in by_value.values():
                x.model.add(total(terms) <= 1)


def single_lots_fill_in_order(x: Placements) -> None:
    """Of equal lots the first are used: no rule of DRA, it only breaks symmetry."""
    for before, after in zip(x.lots, x.lots[1:], strict=False):
        same = (before.kind, before.node) == (after.kind, after.node)
        if after.single and same:
            x.model.add(after.pods <= before.pods)


RULES: tuple[Callable[[Placements], None], ...] = (
    gangs_are_whole,
    one_alternative_is_chosen,
    requests_are_filled,
    devices_are_exclusive,
    admin_access_comes_last,
    claims_stay_within_limit,
    node_resources_suffice,
    capacity_suffices,
    counters_suffice,
    compatibility_groups_agree,
    attributes_match,
    attributes_are_distinct,
    single_lots_fill_in_order,
)
