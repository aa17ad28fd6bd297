"""The ways to place one pod on a node: what is left of the node after each.

A pod takes its devices one by one; after each, states that differ only in numbering are
one, so many equal devices are few ways. Every rule of an allocation that reaches no
further than a node holds by construction; the direct model and the judge state the same
rules on their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.allocation import MAX_DEVICES
from solver.cache import cached
from solver.engines.pattern.states.canonical import Canonical, canonical
from solver.engines.pattern.states.pruning import Want, settled, without_empty
from solver.engines.pattern.states.transitions import Board, Rules
from solver.errors import TooManyWaysError
from solver.kinds.demand import MemberKind
from solver.kinds.nodes import NodeShape

WAYS = 4096
"""Partial placements of one pod on one state that are looked at."""
EASIER = 4
"""Wants of a group that cost as much as one label to name."""
DRAWN = 3
"""Labels that cost as much to name as one counter that a group draws from."""
Use = tuple[int, int]
"""(index into the member's asks, group of the state)."""


class Batch(Struct, frozen=True, cache_hash=True):
    """What of a batch decides which states are one."""

    attributes: tuple[int, ...]
    """Which attribute each column shows."""
    wants: tuple[Want, ...]
    whole: int
    """Request kinds that mean all devices, one bit each."""
    keeps: bool = False
    """Whether what is left over counts, so that nothing may be left out."""

    def named(self, shape: NodeShape) -> Canonical:
        """Leave out of a state what nobody can use, and give it its name."""
        if self.keeps:
            kept, order = without_empty(shape)
        else:
            kept, order = settled(shape, self.wants, self.whole)
        found = canonical(kept, self.attributes)
        return Canonical(found.shape, tuple(order[index] for index in found.order))


class Placement(Struct, frozen=True):
    """One way to place a pod."""

    after: NodeShape
    """What is left, under its canonical name."""
    rank: int
    """Ranks of the chosen alternatives, added up."""
    uses: tuple[Use, ...]
    """One entry a device."""
    origin: tuple[int, ...]
    """Of each group of `after` its index before."""
    alternatives: tuple[int, ...]
    """The chosen one of each request."""


class _Partial(Struct, frozen=True):
    """Some requests of a pod are served."""

    board: Board
    origin: tuple[int, ...]
    uses: tuple[Use, ...] = ()
    alternatives: tuple[int, ...] = ()
    rank: int = 0
    held: tuple[int, ...] = ()
    """Devices of each claim."""


class Ways(Struct, frozen=True):
    """All ways to place a pod on a state."""

    placements: tuple[Placement, ...]
    """Those that differ in what they leave, best ranks first."""
    work: int
    """What it took to find them: groups and labels that were named."""


@cached(bound=1 << 15)
def ways_to_place(member: MemberKind, state: NodeShape, batch: Batch) -> Ways:
    """List the ways to place a pod.

    Raises:
        TooManyWaysError: there are too many to list.
    """
    placing = _Placing(member, state, batch)
    return Ways(tuple(placing.placements()), placing.work)


class _Placing:
    """Places one pod on one state."""

    def __init__(self, member: MemberKind, state: NodeShape, batch: Batch) -> None:
        self._member = member
        self._state = state
        self._batch = batch
        self._rules = Rules(member, batch.attributes)
        self._looked = self._settled = 0

    @property
    def work(self) -> int:
        """Weigh what was looked at so far by how much there is to a state."""
        labels = sum(
            1 + DRAWN * len(group.traits.draws) + sum(map(len, group.values))
            for group in self._state.groups
        )
        wanted = len(self._state.groups) * len(self._batch.wants) // EASIER
        return (1 + self._looked) * (1 + labels) + self._settled * (1 + wanted)

    def placements(self) -> Iterator[Placement]:
        """Go through the ways, one for each state that is left."""
        found: dict[NodeShape, Placement] = {}
        for partial in self._served():
            self._settled += 1
            way = self._placement(partial)
            known = found.get(way.after)
            if known is None or way.rank < known.rank:
                found[way.after] = way
        yield from sorted(found.values(), key=lambda way: way.rank)

    def _served(self) -> list[_Partial]:
        """Serve one request after the other."""
        groups = len(self._state.groups)
        board = Board(self._state, (0,) * groups)
        held = (0,) * len(self._member.claims)
        partials = [_Partial(board, tuple(range(groups)), held=held)]
        for request in range(self._member.requests):
            served: dict[object, _Partial] = {}
            for partial in self._begun(partials, request):
                for a in self._member.alternatives(request):
                    for more in self._asked(partial, a):
                        key = (more.board, more.held)
                        known = served.get(key)
                        if known is None or more.rank < known.rank:
                            served[key] = more
            partials = list(served.values())
        return partials

    def _begun(self, partials: list[_Partial], request: int) -> list[_Partial]:
        """Begin a request: constraints choose their values."""
        found: dict[object, _Partial] = {}
        for partial in partials:
            for board in self._rules.begun(partial.board, request):
                self._count()
                more = self._after(partial, board, ())
                key = (more.board, more.held)
                known = found.get(key)
                if known is None or more.rank < known.rank:
                    found[key] = more
        return list(found.values())

    def _asked(self, partial: _Partial, a: int) -> list[_Partial]:
        """Serve one (sub)request."""
        ask = self._member.asks[a]
        if ask.all_devices:
            return self._all(partial, a)
        if self._held(partial, ask.claim, ask.count) is None:
            return []
        partials = [partial]
        for _ in range(ask.count):
            taken: dict[Board, _Partial] = {}
            for known in partials:
                for more in self._one(known, a):
                    taken.setdefault(more.board, more)
            partials = list(taken.values())
        return [self._closed(item, a, ask.count) for item in partials]

    def _one(self, partial: _Partial, a: int) -> Iterator[_Partial]:
        """Take one device, in all ways that differ."""
        for group in self._rules.candidates(partial.board, a):
            taken = self._rules.take(partial.board, a, group)
            self._count()
            if taken is not None:
                yield self._after(partial, taken, ((a, partial.origin[group]),))

    def _all(self, partial: _Partial, a: int) -> list[_Partial]:
        """Take all devices that a request means."""
        board = partial.board
        groups = self._rules.all_of(board, a)
        if groups is None:
            return []
        uses = tuple(
            (a, partial.origin[group])
            for group in groups
            for _ in range(board.shape.groups[group].size)
        )
        if self._held(partial, self._member.asks[a].claim, len(uses)) is None:
            return []
        taken = self._rules.take_all(board, a, groups)
        self._count()
        if taken is None:
            return []
        return [self._closed(self._after(partial, taken, uses), a, len(uses))]

    def _after(
        self, partial: _Partial, board: Board, uses: tuple[Use, ...]
    ) -> _Partial:
        if board == partial.board:
            return partial
        named, order = board.named(self._rules)
        return _Partial(
            named,
            tuple([partial.origin[index] for index in order]),
            (*partial.uses, *uses),
            partial.alternatives,
            partial.rank,
            partial.held,
        )

    def _closed(
        self,
        partial: _Partial,
        a: int,
        count: int,
    ) -> _Partial:
        """End a request, which got so many devices."""
        ask = self._member.asks[a]
        ended = self._after(partial, self._rules.ended(partial.board, ask.request), ())
        return _Partial(
            ended.board,
            ended.origin,
            partial.uses,
            (*partial.alternatives, ask.rank),
            partial.rank + ask.rank,
            self._held(partial, ask.claim, count) or partial.held,
        )

    @staticmethod
    def _held(partial: _Partial, claim: int, count: int) -> tuple[int, ...] | None:
        """Count a claim's devices; None: more than it may have."""
        total = partial.held[claim] + count
        if total > MAX_DEVICES:
            return None
        return (*partial.held[:claim], total, *partial.held[claim + 1 :])

    def _placement(self, partial: _Partial) -> Placement:
        named = self._batch.named(partial.board.shape)
        return Placement(
            after=named.shape,
            rank=partial.rank,
            uses=partial.uses,
            origin=tuple(partial.origin[index] for index in named.order),
            alternatives=partial.alternatives,
        )

    def _count(self) -> None:
        self._looked += 1
        if self._looked > WAYS:
            raise TooManyWaysError(f"more than {WAYS} ways to place a pod on a node")
