"""How many pods of one kind a node can take at most, by counting alone.

An upper bound that needs no search: no model may exceed it, and where even the bound
says no, no model is needed. Exact for pods with one request; it may promise too much
where requests compete or several constraints meet, never too little.
"""

from __future__ import annotations

from functools import lru_cache

from solver.problem.demand import LocalConstraint, MemberKind
from solver.problem.nodes import GroupShape, NodeShape


@lru_cache(maxsize=65536)
def pods_at_most(kind: MemberKind, shape: NodeShape) -> int:
    """Bound the pods of this kind on a node of this shape from above."""
    bounds = [1 << 30]
    asked: dict[int, int] = {}
    for request in kind.requests:
        if request.all_devices:
            bounds.append(shape.all_free >> request.kind & 1)
        else:
            asked[request.kind] = asked.get(request.kind, 0) + request.count
    for request_kind, count in asked.items():
        if count:
            bounds.append(_size(shape.groups, 1 << request_kind) // count)
    total = sum(asked.values())
    if total:
        union = 0
        for request_kind in asked:
            union |= 1 << request_kind
        bounds.append(_size(shape.groups, union) // total)
    for constraint in kind.constraints:
        if min(bounds) == 0:
            return 0
        bounds.append(_constrained(kind, constraint, shape))
    return min(bounds)


def _size(groups: tuple[GroupShape, ...], mask: int) -> int:
    return sum(group.size for group in groups if group.mask & mask)


def _constrained(
    kind: MemberKind, constraint: LocalConstraint, shape: NodeShape
) -> int:
    """Bound the pods by one constraint: over the values of its attribute."""
    scope = [kind.requests[r] for r in constraint.requests]
    if not scope:
        return 1 << 30
    by_value: dict[int, list[GroupShape]] = {}
    for group in shape.groups:
        by_value.setdefault(group.values[constraint.attribute], []).append(group)
    missing = by_value.pop(0, [])
    for request in scope:
        if not request.all_devices:
            continue
        mask = 1 << request.kind
        held = [groups for groups in by_value.values() if _size(tuple(groups), mask)]
        if _size(tuple(missing), mask) or (len(held) > 1 and not constraint.distinct):
            return 0
        if constraint.distinct and any(_size(tuple(g), mask) > 1 for g in held):
            return 0
    needs: dict[int, int] = {}
    for request in scope:
        count = 1 if request.all_devices else request.count
        needs[request.kind] = needs.get(request.kind, 0) + count
    if constraint.distinct:
        return _distinct(needs, by_value)
    return (
        sum(
            min(
                _size(tuple(groups), 1 << k) // count
                for k, count in needs.items()
                if count
            )
            for groups in by_value.values()
        )
        if any(needs.values())
        else 1 << 30
    )


def _distinct(needs: dict[int, int], by_value: dict[int, list[GroupShape]]) -> int:
    """One device a value: enough values must offer some device to each request."""
    union = 0
    for request_kind in needs:
        union |= 1 << request_kind
    sizes = [_size(tuple(groups), union) for groups in by_value.values()]
    total = sum(needs.values())
    if sum(1 for size in sizes if size) < total:
        return 0
    return sum(sizes) // total if total else 1 << 30
