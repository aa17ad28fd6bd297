"""Claims that pods on several nodes share, in the direct model.

A shared claim is a lot of one pod (`solver/kinds/sharing.py`): on the node of one
of its pods, and all its pods are where each of its devices is seen.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import structs

from contracts.ids import DeviceID, NodeName
from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.shapes import Identity, NodeView
from solver.kinds.topology import ClaimShared
from solver.placement import GangPlacement

Reach = int | Identity
"""Who sees devices: one node, or all that have a group of this identity."""


def shared_claims_are_reached(placements: Placements) -> None:
    """All pods that share a claim are on nodes that see each of its devices.

    For each group that may serve it: pods where it is seen >= all pods, if it is used.
    """
    for rules in placements.demand.gang_rules:
        for number, shared in enumerate(rules.shared):
            users = [lot for kind in shared.users for lot in placements.lots_of[kind]]
            _stay_with_a_pod(placements, shared, users)
            _keep_in_reach(placements, shared, users, f"{rules.gang},{number}")


def _stay_with_a_pod(
    placements: Placements, shared: ClaimShared, users: list[Lot]
) -> None:
    """The claim is on the node of a pod: claim[node] <= sum(pods[node])."""
    pods_by_node: dict[int, list[Term]] = defaultdict(list)
    for lot in users:
        pods_by_node[lot.node].append((lot.pods, -1))
    for lot in placements.lots_of[shared.claim]:
        terms = pods_by_node.get(lot.node, [])
        placements.model.add(total([(lot.pods, 1), *terms]) <= 0)


def _keep_in_reach(
    placements: Placements, shared: ClaimShared, users: list[Lot], name: str
) -> None:
    uses_by_reach: dict[Reach, list[Term]] = defaultdict(list)
    for lot in placements.lots_of[shared.claim]:
        for (_, group), term in lot.uses.items():
            shape = placements.shape_of(lot).groups[group]
            is_far = bool(shape.identity) and not shape.is_pinning
            uses_by_reach[shape.identity if is_far else lot.node].append(term)
    users_by_identity: dict[Identity, list[Lot]] = defaultdict(list)
    users_by_node: dict[int, list[Lot]] = defaultdict(list)
    for lot in users:
        users_by_node[lot.node].append(lot)
        for identity in {g.identity for g in placements.shape_of(lot).groups}:
            users_by_identity[identity].append(lot)
    count = sum(placements.demand.pods[kind] for kind in shared.users)
    everybody = placements.model.new_int_var(0, count, f"users[{name}]")
    pods: list[Term] = [(lot.pods, 1) for lot in users]
    placements.model.add(total([*pods, (everybody, -1)]) == 0)
    for number, (reach, terms) in enumerate(uses_by_reach.items()):
        seeing = (
            users_by_node.get(reach, [])
            if isinstance(reach, int)
            else users_by_identity.get(reach, [])
        )
        if len(seeing) == len(users):
            continue
        used = placements.model.new_bool_var(f"reached[{name},{number}]")
        for variable, _ in terms:
            most = variable.proto.domain[1]
            placements.model.add(total([(variable, 1), (used, -most)]) <= 0)
        missing: list[Term] = [(lot.pods, -1) for lot in seeing]
        reached = total([(everybody, 1), (used, count), *missing]) <= count
        placements.model.add(reached)


def settle_home(
    placements: Placements, gang: GangPlacement, views: dict[NodeName, NodeView]
) -> GangPlacement:
    """Give each shared claim to the first pod that it can be allocated with.

    Of all devices a node may see more than another; else that is the first pod.
    """
    members = list(gang.members)
    for claim in placements.demand.gangs[gang.gang].separated:
        ((placed,),) = (members[claim.member],)
        kind = placements.demand.cells_of[gang.gang][claim.member][0].kind
        asks = placements.demand.member_kinds[kind].asks
        meant = [
            (ask.kind, frozenset(placed.devices[ask.request]))
            for ask in asks
            if ask.all_devices and placed.alternatives[ask.request] == ask.rank
        ]
        home = next(
            pod.node
            for user, _ in sorted(claim.users)
            for pod in members[user]
            if _means(views[pod.node], meant)
        )
        members[claim.member] = (structs.replace(placed, node=home),)
    return GangPlacement(gang.gang, tuple(members))


def _means(view: NodeView, meant: list[tuple[int, frozenset[DeviceID]]]) -> bool:
    """True if all devices of these kinds are, seen from a node, just these."""
    return all(
        view.shape.all_free >> kind & 1
        and devices
        == {
            device
            for group, shape in zip(view.groups, view.shape.groups, strict=True)
            if shape.mask >> kind & 1
            for device in group.devices
        }
        for kind, devices in meant
    )
