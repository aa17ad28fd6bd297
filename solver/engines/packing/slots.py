"""What a pod needs of a node's parts: slots, each served within one part.

A request without constraints asks for so many slots of one device each. Requests that
are held together by matchAttribute are one slot: their devices have a value in common,
so they are of one part (see `parts.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, structs

from contracts.allocation import MAX_DEVICES
from solver.errors import NotPackableError
from solver.kinds.demand import Demand, LocalConstraint, MemberKind


class SlotUse(Struct, frozen=True):
    """SlotTable of one sort that a pod needs."""

    slot: int
    asks: tuple[int, ...]
    """Indices into `MemberKind.asks`, in the order of the slot's own asks."""
    count: int


class SlotTable:
    """The sorts of slot of a batch, numbered, and what each member kind needs."""

    def __init__(self, demand: Demand) -> None:
        """Cut the pods of a batch into slots.

        Raises:
            NotPackableError: some pod asks for what is no matter of single parts.
        """
        if any(kind.admin for kind in demand.query.requests):
            raise NotPackableError("admin access takes nothing")
        if any(kind.all_devices for kind in demand.query.requests):
            raise NotPackableError("all devices of a node")
        if demand.has_alternatives:
            raise NotPackableError("alternatives")
        numbers: dict[MemberKind, int] = {}
        self.uses: tuple[tuple[SlotUse, ...], ...] = tuple(
            tuple(_cut(member, numbers)) for member in demand.member_kinds
        )
        """By member kind."""
        self.kinds: tuple[MemberKind, ...] = tuple(numbers)
        """For each slot, what it asks for, as a pod of its own."""


def _cut(member: MemberKind, numbers: dict[MemberKind, int]) -> list[SlotUse]:
    if any(constraint.distinct for constraint in member.constraints):
        raise NotPackableError("distinctAttribute")
    sizes = Counter[int]()
    for ask in member.asks:
        sizes[ask.claim] += ask.count
    if max(sizes.values(), default=0) > MAX_DEVICES:
        raise NotPackableError("claims that are too large")
    uses = []
    for asks in _connect(member):
        constraints = [c for c in member.constraints if _names(c, asks)]
        is_single = len(asks) == 1 and not constraints
        count = member.asks[asks[0]].count if is_single else 1
        if not count:
            continue
        slot = _slot_of(member, asks, constraints, is_single=is_single)
        number = numbers.setdefault(slot, len(numbers))
        uses.append(SlotUse(number, asks, count))
    return uses


def _names(constraint: LocalConstraint, asks: Sequence[int]) -> bool:
    return any(ask in asks for ask, _ in constraint.scope)


def _connect(member: MemberKind) -> list[tuple[int, ...]]:
    """Put asks together that are held together by constraints."""
    groups = {ask: {ask} for ask in range(len(member.asks))}
    for constraint in member.constraints:
        joined = set[int]().union(*(groups[ask] for ask, _ in constraint.scope))
        for ask in joined:
            groups[ask] = joined
    return list(dict.fromkeys(tuple(sorted(group)) for group in groups.values()))


def _slot_of(
    member: MemberKind,
    asks: tuple[int, ...],
    constraints: Sequence[LocalConstraint],
    *,
    is_single: bool,
) -> MemberKind:
    """Write a slot as a pod of one claim that asks for nothing else."""
    place = {ask: number for number, ask in enumerate(asks)}
    own = []
    for number, index in enumerate(asks):
        ask = structs.replace(member.asks[index], claim=0, request=number, rank=0)
        own.append(structs.replace(ask, count=1) if is_single else ask)
    return MemberKind(
        asks=tuple(own),
        constraints=tuple(
            LocalConstraint(
                distinct=False,
                scope=tuple((place[ask], column) for ask, column in constraint.scope),
            )
            for constraint in constraints
        ),
        claims=(len(own),),
    )
