"""Which nodes a model needs to see.

Of each node kind at most as many nodes as the batch has pods matter, lowest names
first: exact for rules inside a node. Most batches need far fewer: enough nodes of the
tightest kinds to hold every pod by count. If all gangs fit on those, no larger model
could do better, so the small one is tried first.
"""

from __future__ import annotations

from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeKind, NodeShape, NodeView


def all_needed_nodes(
    kinds: tuple[NodeKind, ...], demand: Demand
) -> tuple[NodeView, ...]:
    """Choose nodes such that no answer needs another: kinds are exchangeable."""
    pods = sum(demand.pods)
    return tuple(
        view
        for kind in kinds
        if any(bound_pods(member, kind.shape) for member in demand.member_kinds)
        for view in kind.nodes[:pods]
    )


def enough_nodes(
    kinds: tuple[NodeKind, ...], demand: Demand, *, spare: int
) -> tuple[NodeView, ...]:
    """Choose nodes that hold `spare` times the batch's pods by count, tightest first.

    Large pods choose first; a node chosen for one kind of pod is not counted for
    another.
    """
    chosen = [0] * len(kinds)
    """Nodes of each kind."""
    largest_first = sorted(
        range(len(demand.member_kinds)),
        key=lambda number: (-demand.member_kinds[number].asked, number),
    )
    for number in largest_first:
        member, pods_left = demand.member_kinds[number], demand.pods[number] * spare
        tightest_first = sorted(
            range(len(kinds)),
            key=lambda index: (_tightness(member, kinds[index].shape), index),
        )
        for index in tightest_first:
            most = bound_pods(member, kinds[index].shape)
            if pods_left <= 0 or most == 0:
                continue
            available = len(kinds[index].nodes) - chosen[index]
            nodes = min(available, -(-pods_left // most))
            chosen[index] += nodes
            pods_left -= nodes * most
    return tuple(
        view
        for kind, count in zip(kinds, chosen, strict=True)
        for view in kind.nodes[:count]
    )


def count_fewest_nodes(kinds: tuple[NodeKind, ...], demand: Demand) -> int:
    """Bound from below how many nodes the whole batch touches, by counting."""
    bounds = [0]
    for member, pods in zip(demand.member_kinds, demand.pods, strict=True):
        most = max((bound_pods(member, kind.shape) for kind in kinds), default=0)
        bounds.append(-(-pods // most) if most else 0)
    return max(bounds)


def _tightness(member: MemberKind, shape: NodeShape) -> tuple[int, int]:
    """Rank node shapes for a pod: fewest devices to spare, then fewest devices."""
    size = sum(group.size for group in shape.groups)
    used = min(bound_pods(member, shape) * member.asked, size)
    return (size - used, size)
