"""Kinds of pods written out, for tests of what has forgotten names long since."""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.states.placing import StateReduction
from solver.engines.pattern.states.pruning import collect_device_demands
from solver.kinds.demand import LocalConstraint, MemberKind, RequestAlternative
from solver.kinds.shapes import GroupShape


def alternative(
    kind: int = 0, count: int = 1, *, request: int = 0, rank: int = 0
) -> RequestAlternative:
    """Ask for so many devices of a request kind; 0: for all of them."""
    return RequestAlternative(
        claim=0,
        request=request,
        rank=rank,
        kind=kind,
        count=count,
        all_devices=count == 0,
        admin=False,
    )


def pod_kind(
    *asks: RequestAlternative,
    match: Sequence[tuple[int, int]] = (),
    distinct: Sequence[tuple[int, int]] = (),
) -> MemberKind:
    """Make pods with one claim; constraints are scopes: (ask, column)."""
    constraints = [
        LocalConstraint(is_distinct, tuple(scope))
        for is_distinct, scope in ((False, match), (True, distinct))
        if scope
    ]
    requests = len({ask.request for ask in asks})
    return MemberKind(asks, tuple(constraints), (requests,))


def group(
    size: int = 1, *values: tuple[int, ...], kinds: Sequence[int] = (0,)
) -> GroupShape:
    """Make a group of plain devices that may serve some request kinds."""
    return GroupShape(sum(1 << kind for kind in kinds), values, size)


def reduction_of(*pods: MemberKind, columns: int = 0) -> StateReduction:
    """Reduce states by what these pods can use; each column is its own attribute."""
    demands = collect_device_demands(pods)
    return StateReduction(tuple(range(columns)), demands, whole_kinds=0)
