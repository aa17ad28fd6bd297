"""What an answer costs by preferences about topology, counted from where pods went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from msgspec import Struct

from contracts.ids import DeviceID, NodeName
from contracts.pods.node_resources import PODS
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind, NodeView
from solver.kinds.topology import DomainKey, GangRules
from solver.placement import GangPlacement, PodPlacement
from solver.problem.attributes import Element


class _Placed(Struct, frozen=True, eq=False):
    """A pod, by what rules name it."""

    kind: int
    pods: int
    """Pods that it stands for."""
    view: NodeView
    devices: frozenset[DeviceID]
    """Its own, and those that it shares."""


def count_preference_cost(
    demand: Demand, kinds: tuple[NodeKind, ...], placements: tuple[GangPlacement, ...]
) -> int:
    """Add up what preferences cost over the gangs that are in."""
    rules_by_gang = {
        rules.gang: rules for rules in demand.gang_rules if rules.has_preferences
    }
    if not rules_by_gang:
        return 0
    views = {view.name: view for kind in kinds for view in kind.nodes}
    return sum(
        _cost_of(rules_by_gang[placement.gang], demand, views, placement)
        for placement in placements
        if placement.gang in rules_by_gang
    )


def _cost_of(
    rules: GangRules,
    demand: Demand,
    views: dict[NodeName, NodeView],
    placement: GangPlacement,
) -> int:
    column = demand.query.resources.index(PODS)
    pods_and_kinds = [
        (kind, pod)
        for kinds, pods in zip(
            demand.kinds_of_pods(placement.gang), placement.members, strict=True
        )
        for kind, pod in zip(kinds, pods, strict=False)
    ]
    shared: dict[int, frozenset[DeviceID]] = {}
    for claim in rules.shared:
        listed = (
            _devices_of(pod) for kind, pod in pods_and_kinds if kind == claim.claim
        )
        devices = frozenset[DeviceID]().union(*listed)
        for user in claim.users:
            shared[user] = shared.get(user, frozenset()) | devices
    placed = [
        _Placed(
            kind,
            demand.member_kinds[kind].needs[column],
            views[pod.node],
            _devices_of(pod) | shared.get(kind, frozenset()),
        )
        for kind, pod in pods_and_kinds
    ]
    cost = 0
    for together in rules.together:
        if not together.required:
            domains = _count_pods(demand, together.key, together.kinds, placed)
            new = [at for at, alone in domains if alone or at not in together.standing]
            cost += len(new) if together.standing else max(len(new) - 1, 0)
    for even in rules.even:
        domains = _count_pods(demand, even.key, even.kinds, placed)
        cost += max(len(domains) - 1, 0)
    for spread in rules.spread:
        if not spread.required:
            domains = _count_pods(demand, spread.key, spread.kinds, placed)
            cost += sum(
                max(pods - spread.room_in(domain if alone is None else None), 0)
                for (domain, alone), pods in domains.items()
            )
    return cost


def _devices_of(pod: PodPlacement) -> frozenset[DeviceID]:
    return frozenset(device for listed in pod.devices for device in listed)


def _count_pods(
    demand: Demand, key: DomainKey, kinds: tuple[int, ...], placed: list[_Placed]
) -> Counter[tuple[Hashable, int | None]]:
    """Count pods by domain; one without a domain is one of its own."""
    domains = Counter[tuple[Hashable, int | None]]()
    for pod in placed:
        if pod.kind in kinds:
            domain = _find_domain(demand, key, pod)
            domains[(domain, None if domain is not None else id(pod))] += pod.pods
    return domains


def _find_domain(demand: Demand, key: DomainKey, pod: _Placed) -> Hashable:
    if key.label is not None:
        return pod.view.shape.domains[key.label]
    position = demand.query.named.index(key.column or 0)
    common: set[Element] | None = None
    for group, shape in zip(pod.view.groups, pod.view.shape.groups, strict=True):
        values = set(shape.elements[position])
        if values and not pod.devices.isdisjoint(group.devices):
            common = values if common is None else common & values
    return common.pop() if common is not None and len(common) == 1 else None
