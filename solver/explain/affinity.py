"""Which rule between pods keeps a member away, or leaves it too little room.

Node by node: pods that run there, and what rules count. Rules about domains span nodes,
so they are only named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.allocation import Reason, Rule
from contracts.counts import counted
from solver.explain.pods import describe_alone
from solver.problem.affinity.rules import APART, CARRIER, NEAR, SPREAD, Take
from solver.problem.gangs import GangPart, MemberPart
from solver.snapshot.parts import NodePart

_RULE_OF_KIND = {
    APART: Rule.POD_APART,
    NEAR: Rule.POD_NEAR,
    SPREAD: Rule.POD_SPREAD,
}


def list_rooms(member: MemberPart, node: NodePart) -> Iterator[tuple[str, int]]:
    """List what rules between pods count, by name: the pods that a node has room for.

    A rule that sets the node no limit is not in it.
    """
    for take in member.resolved.takes:
        left = take.rule.left_on(node.name, node.labels)
        if left is not None:
            yield _name_counted(take), left // take.amount


def find_obstacle(
    member: MemberPart, node: NodePart, rooms: Mapping[str, int]
) -> tuple[Rule, str] | None:
    """Find the rule that keeps a member from a node, in words; None: none does.

    `rooms`: as `list_rooms` has them.
    """
    for nodes in member.resolved.node_sets:
        if not nodes.has(node.labels):
            return nodes.rule, nodes.why
    for take in member.resolved.takes:
        if rooms.get(_name_counted(take)) == 0:
            return take.rule.rule, f"{take.rule.about} is taken"
    return None


def find_take(member: MemberPart, name: str) -> Take | None:
    """Find what is counted under a name of `list_rooms`; None: it is a resource."""
    takes = (each for each in member.resolved.takes if _name_counted(each) == name)
    return next(takes, None)


def _name_counted(take: Take) -> str:
    return f"{take.rule.rule}: {take.rule.about}"


def explain_crowding(member: MemberPart, take: Take, nodes: int, room: int) -> Reason:
    """Explain that a rule between pods leaves the least room on so many nodes."""
    would = "otherwise suitable node"
    where = counted(nodes, would, would.replace("node", "nodes", 1))
    message = (
        f"{take.rule.about}: room for {room} of "
        f"{counted(member.count, 'pod')} on {where}"
    )
    facts = {"nodes": nodes, "room": room, "pods": member.count}
    return Reason(
        rule=take.rule.rule, subject=member.name, message=message, facts=facts
    )


def explain_domains(gang: GangPart) -> Reason | None:
    """Return which rule about domains a gang's pods have; None: they have none."""
    rules = [
        (member, role.rule)
        for member in gang.members
        for role in member.resolved.roles
        if role.bits & CARRIER
    ]
    if not rules:
        return None
    member, rule = rules[0]
    abouts = dict.fromkeys(rule.about for _, rule in rules)
    message = f"{describe_alone(gang.pods)} with {'; '.join(abouts)}"
    return Reason(
        rule=_RULE_OF_KIND[rule.kind],
        subject=member.name,
        message=message,
        facts={"pods": gang.pods},
    )
