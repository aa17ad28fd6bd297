"""The ways to place one pod on a node: what is left of the node after each.

A pod takes its devices one by one; after each, states that differ only in numbering are
merged, so many equal devices make few placements. Every rule of an allocation that
reaches no further than a node holds by construction; the direct model and the judge
state the same rules on their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs

from contracts.allocation import MAX_DEVICES
from solver.cache import cached
from solver.engines.pattern.states.canonical import (
    CanonicalForm,
    canonicalize,
    share_equal,
)
from solver.engines.pattern.states.pruning import (
    DeviceDemand,
    drop_empty_groups,
    prune,
)
from solver.engines.pattern.states.transitions import PartialState, Transitions
from solver.errors import TooManyPlacementsError
from solver.kinds.demand import MemberKind
from solver.kinds.shapes import NodeShape

MAX_PARTIALS = 4096
"""Partial placements of one pod on one state that are looked at."""
DEMANDS_PER_LABEL = 4
"""Demands on a group that cost as much to prune by as one label costs to name."""
LABELS_PER_DRAW = 3
"""Labels that cost as much to name as one counter that a group draws from."""
Use = tuple[int, int]
"""(index into the member's asks, group of the state)."""


class StateReduction(Struct, frozen=True, cache_hash=True):
    """What of a batch decides which states are one."""

    attributes: tuple[int, ...]
    """Which attribute each column shows."""
    demands: tuple[DeviceDemand, ...]
    whole_kinds: int
    """Request kinds that mean all devices, one bit each."""
    keeps_all: bool = False
    """True if what is left over has a value, so that nothing may be pruned."""

    def start(self, shape: NodeShape) -> CanonicalForm:
        """Reduce a node that nobody of the batch is on to what it has of devices."""
        return _start_of(shape, self)

    def apply(self, shape: NodeShape) -> CanonicalForm:
        """Prune what nobody can use of a state, and bring it into canonical form."""
        if self.keeps_all:
            pruned, kept = drop_empty_groups(shape)
        else:
            pruned, kept = prune(shape, self.demands, self.whole_kinds)
        form = canonicalize(pruned, self.attributes)
        return CanonicalForm(form.shape, tuple(kept[index] for index in form.order))


@cached(bound=1 << 15)
def _start_of(shape: NodeShape, reduction: StateReduction) -> CanonicalForm:
    all_free = shape.all_free & reduction.whole_kinds
    # In which domains a node is, is no matter of its devices.
    own = structs.replace(shape, free=(), all_free=all_free, domains=())
    return reduction.apply(own)


class Placement(Struct, frozen=True):
    """One way to place a pod."""

    after: NodeShape
    """What is left, reduced."""
    rank: int
    """Ranks of the chosen alternatives, added up."""
    uses: tuple[Use, ...]
    """One entry a device."""
    origin: tuple[int, ...]
    """For each group of `after`, its index in the state before."""
    alternatives: tuple[int, ...]
    """The chosen one of each request."""


class _PartialPlacement(Struct, frozen=True):
    """A pod of which some requests, and some devices of the next one, are served."""

    state: PartialState
    origin: tuple[int, ...]
    """For each group of `state`, its index in the state that the pod began with."""
    uses: tuple[Use, ...] = ()
    alternatives: tuple[int, ...] = ()
    rank: int = 0
    claim_sizes: tuple[int, ...] = ()
    """Devices of each claim."""


class PlacementList(Struct, frozen=True):
    """All ways to place a pod on a state."""

    placements: tuple[Placement, ...]
    """Those that differ in what they leave, best ranks first."""
    work: int
    """What it took to find them: groups and labels that were named."""


@cached(bound=1 << 15)
def list_placements(
    member: MemberKind, state: NodeShape, reduction: StateReduction
) -> PlacementList:
    """List the ways to place a pod.

    Raises:
        TooManyPlacementsError: there are too many to list.
    """
    search = _PlacementSearch(member, state, reduction)
    return PlacementList(search.run(), search.work)


class _PlacementSearch:
    """Places one pod on one state: breadth first, request by request."""

    def __init__(
        self, member: MemberKind, state: NodeShape, reduction: StateReduction
    ) -> None:
        self._member = member
        self._state = state
        self._reduction = reduction
        self._transitions = Transitions(member, reduction.attributes)
        self._partials = self._completed = 0
        """How many of them were looked at."""

    @property
    def work(self) -> int:
        """Weigh what was looked at so far by how much there is to a state."""
        labels = sum(
            1 + LABELS_PER_DRAW * len(group.traits.draws) + sum(map(len, group.values))
            for group in self._state.groups
        )
        demands = len(self._reduction.demands)
        pruned = len(self._state.groups) * demands // DEMANDS_PER_LABEL
        return (1 + self._partials) * (1 + labels) + self._completed * (1 + pruned)

    def run(self) -> tuple[Placement, ...]:
        """List the placements, one for each state that is left: its best rank."""
        by_state: dict[NodeShape, Placement] = {}
        for partial in self._serve_all_requests():
            self._completed += 1
            placement = self._complete(partial)
            former = by_state.get(placement.after)
            if former is None or placement.rank < former.rank:
                by_state[placement.after] = placement
        return tuple(sorted(by_state.values(), key=lambda placement: placement.rank))

    def _serve_all_requests(self) -> list[_PartialPlacement]:
        """Serve one request after the other; of equal states the best rank goes on."""
        groups = len(self._state.groups)
        untouched = PartialState(self._state, (0,) * groups)
        no_devices = (0,) * len(self._member.claims)
        partials = [
            _PartialPlacement(untouched, tuple(range(groups)), claim_sizes=no_devices)
        ]
        for request in range(self._member.requests):
            served: dict[object, _PartialPlacement] = {}
            for partial in self._begin_request(partials, request):
                for alternative in self._member.alternatives(request):
                    for successor in self._serve_alternative(partial, alternative):
                        _keep_best_rank(served, successor)
            partials = list(served.values())
        return partials

    def _begin_request(
        self, partials: list[_PartialPlacement], request: int
    ) -> list[_PartialPlacement]:
        """Begin a request: constraints choose their values."""
        begun: dict[object, _PartialPlacement] = {}
        for partial in partials:
            for state in self._transitions.begin_request(partial.state, request):
                self._count_partial()
                _keep_best_rank(begun, self._advance(partial, state, ()))
        return list(begun.values())

    def _serve_alternative(
        self, partial: _PartialPlacement, alternative: int
    ) -> list[_PartialPlacement]:
        """Serve a request by one of its alternatives, in all ways that differ."""
        terms = self._member.asks[alternative]
        if terms.all_devices:
            return self._take_all(partial, alternative)
        count = terms.count
        if _add_to_claim(partial, terms.claim, count) is None:
            return []
        partials = [partial]
        for _ in range(count):
            taken: dict[PartialState, _PartialPlacement] = {}
            for former in partials:
                for successor in self._take_one(former, alternative):
                    taken.setdefault(successor.state, successor)
            partials = list(taken.values())
        return [self._end_request(served, alternative, count) for served in partials]

    def _take_one(
        self, partial: _PartialPlacement, alternative: int
    ) -> Iterator[_PartialPlacement]:
        """Take one device, in all ways that differ."""
        for group in self._transitions.find_candidates(partial.state, alternative):
            state = self._transitions.take_device(partial.state, alternative, group)
            self._count_partial()
            if state is not None:
                use = (alternative, partial.origin[group])
                yield self._advance(partial, state, (use,))

    def _take_all(
        self, partial: _PartialPlacement, alternative: int
    ) -> list[_PartialPlacement]:
        """Take all devices that a request means."""
        groups = self._transitions.find_whole_groups(partial.state, alternative)
        if groups is None:
            return []
        uses = tuple(
            (alternative, partial.origin[group])
            for group in groups
            for _ in range(partial.state.shape.groups[group].size)
        )
        claim = self._member.asks[alternative].claim
        if _add_to_claim(partial, claim, len(uses)) is None:
            return []
        state = self._transitions.take_whole_groups(partial.state, alternative, groups)
        self._count_partial()
        if state is None:
            return []
        served = self._advance(partial, state, uses)
        return [self._end_request(served, alternative, len(uses))]

    def _advance(
        self, partial: _PartialPlacement, state: PartialState, uses: tuple[Use, ...]
    ) -> _PartialPlacement:
        """Go on in a state that a transition led to, in its canonical form."""
        if state == partial.state:
            return partial
        canonical, order = state.canonicalize(self._transitions.attributes)
        return _PartialPlacement(
            canonical,
            tuple([partial.origin[index] for index in order]),
            (*partial.uses, *uses),
            partial.alternatives,
            partial.rank,
            partial.claim_sizes,
        )

    def _end_request(
        self, partial: _PartialPlacement, alternative: int, count: int
    ) -> _PartialPlacement:
        """End a request, which got so many devices."""
        terms = self._member.asks[alternative]
        state = self._transitions.end_request(partial.state, terms.request)
        ended = self._advance(partial, state, ())
        sizes = _add_to_claim(partial, terms.claim, count)
        return _PartialPlacement(
            ended.state,
            ended.origin,
            partial.uses,
            (*partial.alternatives, terms.rank),
            partial.rank + terms.rank,
            sizes or partial.claim_sizes,
        )

    def _complete(self, partial: _PartialPlacement) -> Placement:
        """Reduce what the whole pod leaves, for whoever comes next."""
        form = self._reduction.apply(partial.state.shape)
        return Placement(
            after=form.shape,
            rank=partial.rank,
            uses=share_equal(partial.uses),
            origin=share_equal(tuple(partial.origin[index] for index in form.order)),
            alternatives=share_equal(partial.alternatives),
        )

    def _count_partial(self) -> None:
        self._partials += 1
        if self._partials > MAX_PARTIALS:
            message = f"more than {MAX_PARTIALS} ways to place a pod on a node"
            raise TooManyPlacementsError(message)


def _keep_best_rank(
    partials: dict[object, _PartialPlacement], partial: _PartialPlacement
) -> None:
    """Add a partial placement, unless one at the same state is as good."""
    key = (partial.state, partial.claim_sizes)
    former = partials.get(key)
    if former is None or partial.rank < former.rank:
        partials[key] = partial


def _add_to_claim(
    partial: _PartialPlacement, claim: int, count: int
) -> tuple[int, ...] | None:
    """Count a claim's devices with `count` more; None: more than it may have."""
    sizes = partial.claim_sizes
    total = sizes[claim] + count
    if total > MAX_DEVICES:
        return None
    return (*sizes[:claim], total, *sizes[claim + 1 :])
