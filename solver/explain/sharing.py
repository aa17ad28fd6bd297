"""Why the pods that share a claim find no devices that all of their nodes see."""

from __future__ import annotations

from contracts.allocation import Reason, Rule
from contracts.counts import counted
from contracts.ids import NodeName
from solver.explain.values import RoomByName, describe_rooms
from solver.kinds.counting import bound_pods, bound_uses
from solver.kinds.demand import Demand
from solver.kinds.shapes import DeviceGroup, GroupShape, NodeKind


def explain_reach(demand: Demand, kinds: tuple[NodeKind, ...]) -> Reason | None:
    """Compare the pods that have room where one device is seen with those asked for."""
    for claim, shared in zip(
        demand.gangs[0].separated,
        demand.gang_rules[0].shared if demand.gang_rules else (),
        strict=True,
    ):
        member = demand.member_kinds[shared.claim]
        asked = sum(demand.pods[kind] for kind in shared.users)
        rooms: RoomByName = {}
        for kind in kinds:
            pods = sum(
                min(
                    bound_pods(demand.member_kinds[user], kind.shape), demand.pods[user]
                )
                for user in shared.users
            )
            for view in kind.nodes if pods else ():
                for where in {
                    _name_reach(group, named, view.name)
                    for group, named in zip(kind.shape.groups, view.groups, strict=True)
                    if any(bound_uses(group, ask) for ask in member.asks)
                }:
                    rooms[where] = rooms.get(where, 0) + pods
        found = max(rooms.values(), default=0)
        if found < asked and any(ask.count or ask.all_devices for ask in member.asks):
            name = demand.gangs[0].members[claim.member].claims[0].claim_name
            return Reason(
                rule=Rule.JOINT,
                subject=f"claim {name}",
                message=f"its {counted(asked, 'pod')} must be on nodes that see the "
                f"same devices; {describe_rooms(rooms, counted(asked, 'pod'))}",
                facts={"asked": asked, "room": found, "reaches": len(rooms)},
            )
    return None


def _name_reach(group: GroupShape, named: DeviceGroup, node: NodeName) -> str:
    """Name the devices that all nodes see which see one of a group."""
    if not group.identity or group.is_pinning:
        return f"node {node}"
    return f"pool {named.devices[0].pool}"
