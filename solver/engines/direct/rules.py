"""The rules of an allocation as constraints of the direct model, one function each.

`RULES` fixes their names and order. Which devices may serve a request at all
(selectors, taints, what is taken) is not a rule here: only groups that may are in the
model. The judge states every rule again, on its own. Rules about counters, shares and
compatibility groups, which may reach over several nodes, are in `shared.py`, those
between pods in `between.py`, those of whole gangs in `gangs.py`, of claims that pods
share in `shared_claims.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from contracts.allocation import MAX_DEVICES
from solver.engines import cp_model
from solver.engines.cpsat import Term, total
from solver.engines.direct.between import (
    pods_are_apart,
    pods_are_near,
    pods_are_spread,
)
from solver.engines.direct.gangs import (
    devices_agree,
    domains_are_even,
    domains_are_not_crowded,
    extra_pods_follow,
    pods_are_together,
    pods_have_domains,
)
from solver.engines.direct.shared import (
    capacity_suffices,
    compatibility_groups_agree,
    counters_suffice,
    scaled,
)
from solver.engines.direct.shared_claims import shared_claims_are_reached
from solver.engines.direct.variables import Lot, Placements, may_exceed
from solver.kinds.demand import LocalConstraint, RequestAlternative


def gangs_are_whole(placements: Placements) -> None:
    """All pods of a gang are placed that it needs, and perhaps more, or none.

    For each member kind: sum(pods[member, node]) = sum(least(gang, member) * in[gang])
    + sum(extra[gang, member]), and extra[gang, member] <= most * in[gang].
    """
    for member, lots in enumerate(placements.lots_of):
        terms: list[Term] = [(lot.pods, 1) for lot in lots]
        for gang, gangs_in in placements.gangs.items():
            terms.extend(
                (gangs_in, -pods) for kind, pods in gang.members if kind == member
            )
            if (gang, member) in placements.extra:
                terms.append((placements.extra[gang, member], -1))
        placements.model.add(total(terms) == 0)
    for gang, gangs_in in placements.gangs.items():
        for member, pods in gang.extra:
            extra = placements.extra[gang, member]
            placements.model.add(extra <= pods * gangs_in)


def one_alternative_is_chosen(placements: Placements) -> None:
    """Each pod takes one alternative of each request.

    sum(picks[lot, ask] for ask of the request) = pods[lot].
    Source: DeviceRequest.firstAvailable (KEP-4816).
    """
    for lot in placements.lots:
        member = placements.member_of(lot)
        for request in range(member.requests):
            asks = member.alternatives(request)
            possible = [ask for ask in asks if ask in lot.picks]
            # A request without a choice has no variable of its own: see `Lot.picks`.
            if len(asks) > 1 or not possible:
                terms: list[Term] = [(lot.picks[ask], 1) for ask in possible]
                placements.model.add(total([*terms, (lot.pods, -1)]) == 0)


def requests_are_filled(placements: Placements) -> None:
    """Each pod gets as many devices for a request as it asks for.

    sum(uses[lot, ask, group]) = count(ask) * picks[lot, ask]; of a device that may be
    shared each pod gets one share at most.
    Source: DeviceRequest.exactly.count (ExactCount).
    """
    for lot in placements.lots:
        member, shape = placements.member_of(lot), placements.shape_of(lot)
        for ask, pick in lot.picks.items():
            alternative, serving = member.asks[ask], lot.serving(ask)
            if alternative.all_devices or alternative.count == 0:
                continue
            for group, term in serving:
                if shape.groups[group].is_shareable:
                    placements.model.add(total([term, (pick, -1)]) <= 0)
            # One group that alone serves the ask is counted by `pick` itself.
            if len(serving) != 1 or serving[0][1][0] is not pick:
                terms = [term for _, term in serving]
                filled = total([*terms, (pick, -alternative.count)]) == 0
                placements.model.add(filled)


def devices_are_exclusive(placements: Placements) -> None:
    """No device that cannot be shared serves two requests.

    For each node and group: sum(uses[lot, ask, group]) <= size(group); of devices that
    several nodes see, over all nodes. Admin access takes nothing (KEP-5018).
    """
    uses_of_group: dict[object, list[Term]] = {}
    sizes: dict[object, int] = {}
    for lot in placements.lots:
        asks = placements.member_of(lot).asks
        for (ask, group), term in lot.uses.items():
            group_shape = placements.shape_of(lot).groups[group]
            if not group_shape.is_shareable and not asks[ask].admin:
                key: object = group_shape.identity or (lot.node, group)
                uses_of_group.setdefault(key, []).append(term)
                sizes[key] = group_shape.size
    for key, terms in uses_of_group.items():
        placements.model.add(total(terms) <= sizes[key])


def admin_access_comes_last(placements: Placements) -> None:
    """With admin access a claim has a device once, and nobody after it has it.

    For each lot (of one pod) and device: at most one use in a claim; no use for a
    request that follows one with admin access.
    Source: KEP-5018; the order is that of kube-scheduler's search.
    """
    for lot in placements.lots:
        asks = placements.member_of(lot).asks
        if not any(alternative.admin for alternative in asks):
            continue
        uses_of_group: dict[int, list[tuple[RequestAlternative, Term]]] = {}
        for (ask, group), term in lot.uses.items():
            if not placements.shape_of(lot).groups[group].is_shareable:
                uses_of_group.setdefault(group, []).append((asks[ask], term))
        for uses in uses_of_group.values():
            for earlier, first in uses:
                if earlier.admin:
                    placements.model.add(total([first]) <= 1)
                for later, second in uses:
                    same_claim = earlier.claim == later.claim
                    after_admin = earlier.admin and not later.admin
                    if earlier.request < later.request and (same_claim or after_admin):
                        placements.model.add(total([first, second]) <= 1)


def claims_stay_within_limit(placements: Placements) -> None:
    """A claim has at most 32 devices (DRA: AllocationResultsMaxSize)."""
    for lot in placements.lots:
        member = placements.member_of(lot)
        if not lot.single or not may_exceed(member, placements.shape_of(lot)):
            continue
        for claim in range(len(member.claims)):
            terms = [
                term
                for (ask, _), term in lot.uses.items()
                if member.asks[ask].claim == claim
            ]
            placements.model.add(total(terms) <= MAX_DEVICES)


def node_resources_suffice(placements: Placements) -> None:
    """The pods on a node need no more of a resource than it has left.

    For each node and resource: sum(need * pods[lot]) <= free. What rules between pods
    make a node have (ports, places for pods that must be apart) is counted likewise.
    Source: kube-scheduler's NodeResourcesFit, NodePorts, InterPodAffinity.
    """
    lots_by_node: dict[int, list[Lot]] = {}
    for lot in placements.lots:
        lots_by_node.setdefault(lot.node, []).append(lot)
    for lots in lots_by_node.values():
        for resource, free in enumerate(placements.shape_of(lots[0]).free):
            needs = [placements.member_of(lot).needs[resource] for lot in lots]
            most = sum(lot.most * need for lot, need in zip(lots, needs, strict=True))
            if free is None or most <= free:
                continue
            amounts, limit = scaled(needs, free)
            pods = [lot.pods for lot in lots]
            terms = list(zip(pods, amounts, strict=True))
            placements.model.add(total(terms) <= limit)


def attributes_match(placements: Placements) -> None:
    """All devices of a pod in a constraint's scope have one value.

    Pods choose a value: sum(value_picks[lot, constraint, value]) = pods[lot], and their
    devices have it.
    Source: DeviceConstraint.matchAttribute; lists are KEP-5491.
    """
    for lot in placements.lots:
        for number, constraint in enumerate(placements.member_of(lot).constraints):
            if constraint.distinct:
                continue
            picks = {
                value: pick
                for (owner, value), pick in lot.value_picks.items()
                if owner == number
            }
            terms: list[Term] = [(pick, 1) for pick in picks.values()]
            if lot.single:
                placements.model.add(total(terms) <= 1)
                _match_one_pod(placements, lot, constraint, picks)
            else:
                placements.model.add(total([*terms, (lot.pods, -1)]) == 0)
                _match_pods(placements, lot, constraint, picks)


def _match_one_pod(
    placements: Placements,
    lot: Lot,
    constraint: LocalConstraint,
    picks: dict[int, cp_model.IntVar],
) -> None:
    """A device is used only if its values include the one that the pod chose."""
    columns, groups = dict(constraint.scope), placements.shape_of(lot).groups
    for (ask, group), (variable, factor) in lot.uses.items():
        if ask in columns:
            most = MAX_DEVICES if factor == 1 else 1
            terms: list[Term] = [
                (picks[value], -most) for value in groups[group].values[columns[ask]]
            ]
            placements.model.add(total([(variable, 1), *terms]) <= 0)


def _match_pods(
    placements: Placements,
    lot: Lot,
    constraint: LocalConstraint,
    picks: dict[int, cp_model.IntVar],
) -> None:
    """For each value, as many devices are used as the pods that chose it ask for."""
    groups = placements.shape_of(lot).groups
    for ask, column in constraint.scope:
        alternative = placements.member_of(lot).asks[ask]
        for value, pick in picks.items():
            terms = [
                term
                for group, term in lot.serving(ask)
                if groups[group].values[column] == (value,)
            ]
            if not alternative.all_devices:
                filled = total([*terms, (pick, -alternative.count)]) == 0
                placements.model.add(filled)
            elif terms:
                placements.model.add(total([(lot.pods, 1), (pick, -1)]) == 0)


def attributes_are_distinct(placements: Placements) -> None:
    """No two devices of a pod in a constraint's scope have a value in common.

    For each lot (of one pod) and value: sum(uses in scope with the value) <= 1.
    Source: DeviceConstraint.distinctAttribute (KEP-5075).
    """
    for lot in placements.lots:
        groups = placements.shape_of(lot).groups
        for constraint in placements.member_of(lot).constraints:
            if not constraint.distinct:
                continue
            columns = dict(constraint.scope)
            uses_of_value: dict[int, list[Term]] = {}
            for (ask, group), term in lot.uses.items():
                if ask in columns:
                    for value in groups[group].values[columns[ask]]:
                        uses_of_value.setdefault(value, []).append(term)
            for terms in uses_of_value.values():
                placements.model.add(total(terms) <= 1)


def single_lots_fill_in_order(placements: Placements) -> None:
    """Of equal lots the first are used: no rule of DRA, it only breaks symmetry."""
    for first, second in pairwise(placements.lots):
        is_same = (first.kind, first.node) == (second.kind, second.node)
        if second.single and is_same:
            placements.model.add(second.pods <= first.pods)


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
    pods_are_apart,
    pods_are_near,
    pods_are_spread,
    extra_pods_follow,
    devices_agree,
    pods_have_domains,
    pods_are_together,
    domains_are_not_crowded,
    domains_are_even,
    shared_claims_are_reached,
    single_lots_fill_in_order,
)
