"""Expected kinds of pods, and what they ask for by number: of equal things one.

Many kinds ask the same of nodes, or other numbers of the same devices, so that each of
it is judged once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from solver.judge.slack_devices import Comparison
from solver.problem.gangs import ClaimPart, MemberPart, RequestPart, SubrequestPart
from solver.problem.problem import ExpectedPart

Needs = tuple[tuple[str, int], ...]
"""What a pod needs of the node itself, `pods` among it."""
Scope = tuple[tuple[int, int, int], ...]
"""(comparison of the grouping, what is asked of a device, how many) by request."""
Claims = tuple[tuple[int, int], ...]
"""What bounds a pod by devices: (grouping, scope)."""
Thing = TypeVar("Thing")


class NumberedKind(Struct, frozen=True):
    """An expected pod, with the numbers of what it asks for."""

    weight: int
    size: int
    is_share: bool
    """It takes less than a device, by the capacity that it asks for."""
    place: int
    needs: int
    claims: int


class Numbered(Generic[Thing]):
    """Things in the order of their numbers; those with equal keys have one."""

    def __init__(self) -> None:
        self.things: list[Thing] = []
        self._numbers: dict[object, int] = {}

    def number(self, key: object, thing: Thing) -> int:
        """Return the number of a thing, a new one if there is none."""
        number = self._numbers.setdefault(key, len(self.things))
        if number == len(self.things):
            self.things.append(thing)
        return number


class NumberedKinds:
    """All expected kinds, and what they ask for."""

    def __init__(self, expected: Iterable[ExpectedPart]) -> None:
        self.asks = Numbered[SubrequestPart]()
        """What is asked of each device, however many."""
        self.comparisons = Numbered[Comparison]()
        self.groupings = Numbered[tuple[int, ...]]()
        """The comparisons that a matchAttribute makes; none: devices in all."""
        self.scopes = defaultdict[int, Numbered[Scope]](Numbered)
        """By grouping."""
        self.places = Numbered[MemberPart]()
        """What is asked of nodes besides amounts: a pod for each."""
        self.needs = Numbered[Needs]()
        self.claims = Numbered[Claims]()
        self.kinds = [self._number_kind(kind) for kind in expected]

    def _number_kind(self, kind: ExpectedPart) -> NumberedKind:
        member = kind.member
        place = (
            member.node_name,
            tuple(sorted(member.node_selector.items())),
            member.affinity,
            member.tolerations,
            member.extended_resources,
            member.features,
        )
        needs = tuple(sorted({"pods": 1, **member.resources}.items()))
        claims = self._read_claims(member.claims)
        return NumberedKind(
            weight=kind.weight,
            size=kind.size,
            is_share=kind.size < 1000
            and any(
                request.alternatives[0].capacity
                for claim in member.claims
                for request in claim.requests
                if _is_counted(request)
            ),
            place=self.places.number(place, member),
            needs=self.needs.number(needs, needs),
            claims=self.claims.number(claims, claims),
        )

    def _read_claims(self, claims: Iterable[ClaimPart]) -> Claims:
        bounds = set[tuple[int, int]]()
        for claim in claims:
            counted = [request for request in claim.requests if _is_counted(request)]
            # Each request on its own is bounded by all of its devices ...
            for request in counted:
                bounds.add(self._number_scope((), ((0, *self._ask_of(request)),)))
            # ... and those of a matchAttribute by devices of one value.
            for constraint in claim.constraints:
                meant = [r for r in counted if _is_meant(r, constraint.requests)]
                if constraint.match_attribute is not None and meant:
                    bounds.add(self._read_match(constraint.match_attribute, meant))
        return tuple(sorted(bounds))

    def _read_match(
        self, attribute: str, meant: Iterable[RequestPart]
    ) -> tuple[int, int]:
        compared: list[tuple[int, int, int]] = []
        for request in meant:
            # Requests may derive the attribute in different ways.
            derived = (attribute, request.alternatives[0].derived_attributes)
            comparison = (attribute, request.alternatives[0])
            number = self.comparisons.number(derived, comparison)
            compared.append((number, *self._ask_of(request)))
        comparisons = tuple(sorted({number for number, _, _ in compared}))
        scope = [
            (comparisons.index(number), ask, count) for number, ask, count in compared
        ]
        return self._number_scope(comparisons, tuple(scope))

    def _number_scope(
        self, comparisons: tuple[int, ...], scope: Scope
    ) -> tuple[int, int]:
        grouping = self.groupings.number(comparisons, comparisons)
        return grouping, self.scopes[grouping].number(scope, scope)

    def _ask_of(self, request: RequestPart) -> tuple[int, int]:
        """Return the number of what is asked of each device, and how many."""
        sub = request.alternatives[0]
        capacity = tuple(sorted((n, q.nano) for n, q in sub.capacity.items()))
        key = (sub.selectors, sub.tolerations, capacity)
        return self.asks.number(key, sub), sub.count


def _is_counted(request: RequestPart) -> bool:
    first = request.alternatives[0]
    return not first.all_devices and not first.admin_access and first.count > 0


def _is_meant(request: RequestPart, names: tuple[str, ...]) -> bool:
    first = request.alternatives[0].name
    own = {request.name, f"{request.name}/{first}" if first else request.name}
    return not names or bool(own & set(names))
