"""Batches in which some gangs are decided apart from the others.

Admin access, devices that several nodes see and pods that use nothing up are beyond
patterns; many rules that span pods are beyond packing. Gangs that ask for such are
placed by the direct model, or one after the other; the rest is decided by the engine
that is made for it, some of it asked for more narrowly (`spanning.py`), each on what
the others left. Both orders are tried where the first is not the best for certain. What
all gangs come to with fewer rules is a bound, and says who should be in.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, structs

from solver.decision import Status
from solver.engines.blocks import find_without_tree
from solver.engines.choose import (
    Decided,
    EngineChoice,
    count_pairs,
    find_gangs_beyond,
    is_small,
)
from solver.engines.direct.part import ONE_WORK, place_part
from solver.engines.domains import place_in_order
from solver.engines.goals import Effort, EngineResult, Goal
from solver.engines.progress import Progress
from solver.engines.spanning import find_tightened, loosen, tighten
from solver.engines.tier_values import join_parts, weight_in
from solver.engines.topology_cost import count_preference_cost
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.kinds.topology import spans_pods
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.stopping import is_stopped
from solver.tiers import Tier

APART = "apart"
REASON = "some gangs are decided apart from the others"
MOST_ALIKE = 200_000
"""Pods times nodes of a batch that the direct model decides as a whole, where all gangs
are for it."""
TOGETHER = 50_000
"""Pods times nodes of gangs that the direct model decides together."""
PART_WORK = 2.0
"""Deterministic time for several together, at most."""
MOST_WORK = 8.0
"""And for all gangs that the direct model is asked about in one order."""
NODE_WORK = 5e-5
"""So much of it is spent on each node each time."""
DecideRest = Callable[[Problem, Demand, tuple[NodeKind, ...]], Decided]
"""Decides gangs that are not apart."""


def find_gangs_apart(
    demand: Demand, kinds: tuple[NodeKind, ...]
) -> frozenset[int] | None:
    """Find the gangs for the direct model; None: the batch is decided as a whole."""
    if len(demand.gangs) < 2 or is_small(demand, kinds) or not can_be_apart(demand):
        return None
    beyond = find_gangs_beyond(demand, kinds)
    if len(beyond) == len(demand.gangs) and count_pairs(demand, kinds) <= MOST_ALIKE:
        return None
    without_tree = find_without_tree(demand)
    if not beyond and not without_tree:
        return None
    return beyond | (without_tree - find_tightened(demand))


def can_be_apart(demand: Demand) -> bool:
    """True if gangs may be decided one after the other.

    Not where pods have rules about each other: what was placed is no pod yet. Nor where
    gangs may have extra pods, which come after all gangs.
    """
    rules = demand.query.domains or demand.query.counted
    return not rules and not demand.is_elastic


def place_in_turn(progress: Progress, order: Iterable[int], nodes: int) -> Progress:
    """Place gangs one by one, each where the direct model finds a place."""
    return _place_parts(progress, ((gang,) for gang in order), nodes)


def place_in_parts(progress: Progress, order: Iterable[int], nodes: int) -> Progress:
    """Place gangs, as many together as the direct model decides soon."""
    return _place_parts(progress, _cut(progress.gangs, order, nodes), nodes)


def _place_parts(
    progress: Progress, parts: Iterable[tuple[int, ...]], nodes: int
) -> Progress:
    """Place some gangs after the others, until `MOST_WORK` is spent.

    Whoever is left out without a proof is asked alone.
    """
    waiting = deque(parts)
    most = progress.effort.work + MOST_WORK
    while waiting and progress.effort.work < most and not is_stopped():
        part = waiting.popleft()
        progress, is_proven = _place_together(progress, part)
        # What is given may change what all nodes see: they are read anew each time.
        most -= NODE_WORK * nodes
        if not is_proven and len(part) > 1:
            gangs_in = progress.gangs_in
            missing = [(gang,) for gang in part if gang not in gangs_in]
            waiting.extendleft(reversed(missing))
    return progress


def _cut(
    gangs: Sequence[GangPart], order: Iterable[int], nodes: int
) -> Iterator[tuple[int, ...]]:
    """Cut gangs into parts that follow each other, each small enough or one gang."""
    part: list[int] = []
    pods = 0
    for gang in order:
        pods += gangs[gang].pods
        if part and pods * nodes > TOGETHER:
            yield tuple(part)
            part, pods = [], gangs[gang].pods
        part.append(gang)
    if part:
        yield tuple(part)


def _place_together(progress: Progress, part: Sequence[int]) -> tuple[Progress, bool]:
    """Place some gangs by one direct model; and whether no more could be in."""
    progress = progress.occupy()
    work_limit = min(ONE_WORK * len(part), PART_WORK)
    asked = (progress.gangs[gang] for gang in part)
    result = place_part(progress.problem, asked, work_limit)
    return progress.add(part, result), result.status is Status.OPTIMAL


class _Relaxed(Struct, frozen=True):
    """What gangs come to if they have fewer rules, by priority."""

    weights: Mapping[int, int]
    """Reached; all of those of whom nothing is known count."""
    bounds: Mapping[int, int]
    gangs_in: frozenset[int]


class ApartSearch:
    """One batch; `run` it once."""

    def __init__(
        self,
        problem: Problem,
        demand: Demand,
        kinds: tuple[NodeKind, ...],
        beyond: frozenset[int],
        decide: DecideRest,
    ) -> None:
        """`beyond`: the gangs that are not decided with the rest."""
        self._problem = problem
        self._demand = demand
        self._gangs = demand.gangs
        self._kinds = kinds
        self._nodes = sum(len(kind.nodes) for kind in kinds)
        self._decide = decide
        self._beyond = beyond
        without_tree = find_without_tree(demand)
        self._tightened = without_tree - beyond
        self._in_turn = beyond - without_tree - find_gangs_beyond(demand, kinds)
        self._effort = Effort()
        """Of the bound."""
        self._answers: list[tuple[Problem, tuple[GangPart, ...], EngineResult]] = []
        """To what was asked before."""

    def run(self) -> Decided:
        """Decide some levels after the other, each time down to one with such gangs."""
        priorities = sorted({gang.priority for gang in self._gangs}, reverse=True)
        apart = self._beyond | self._tightened
        mixed = {self._gangs[gang].priority for gang in apart}
        progress = Progress(self._problem, self._gangs)
        levels: list[int] = []
        for priority in priorities:
            levels.append(priority)
            if priority in mixed or priority == priorities[-1]:
                progress = self._place_levels(progress, levels)
                levels = []
        bounds = self._bound_levels(progress, priorities)
        return EngineChoice(APART, REASON), join_parts(
            self._demand,
            self._kinds,
            progress.placements,
            bounds,
            progress.effort.plus(self._effort),
        )

    def _place_levels(self, before: Progress, priorities: Sequence[int]) -> Progress:
        """Place the gangs of some priorities; those apart are all of the last one.

        The rest goes first; where that is not the best, those apart that should be in.
        """
        gangs = [i for i, g in enumerate(self._gangs) if g.priority in priorities]
        rest = [gang for gang in gangs if gang not in self._beyond]
        first = self._place_rest(before, rest)
        best = self._place_others(first, gangs)
        if self._is_best(best, priorities):
            return best
        # Who found no place as narrowly as asked is apart, too.
        apart = self._beyond | (self._tightened - first.gangs_in)
        wanted = [g for g in gangs if g in apart and g in self._relaxed.gangs_in]
        last = priorities[-1]
        above = [gang for gang in rest if self._gangs[gang].priority > last]
        beside = [gang for gang in rest if gang not in apart and gang not in above]
        if not wanted and [*above, *beside] == rest:
            return best
        other = self._place_rest(best.back_to(before), above)
        other = self._place_apart(other, wanted)
        other = self._place_others(self._place_rest(other, beside), gangs)
        best = max((best, other), key=lambda p: self._weigh(p, priorities))
        return other.back_to(best)

    def _place_others(self, progress: Progress, gangs: Sequence[int]) -> Progress:
        """Place those of some gangs that are apart, and are not in."""
        apart = (self._beyond | self._tightened) - progress.gangs_in
        return self._place_apart(progress, [gang for gang in gangs if gang in apart])

    def _place_apart(self, progress: Progress, gangs: Sequence[int]) -> Progress:
        """Place gangs one after the other, or by the direct model."""
        in_turn = [gang for gang in gangs if gang in self._in_turn]
        if in_turn:
            progress = progress.occupy()
            asked = [self._gangs[gang] for gang in in_turn]
            found = place_in_order(progress.problem, asked)
            result = EngineResult(status=Status.FEASIBLE, placements=found)
            progress = progress.add(in_turn, result)
        # Of those that another search did not place, only who should be in.
        known, gangs_in = self._tightened.union(in_turn), progress.gangs_in
        missing = [
            gang
            for gang in gangs
            if gang not in gangs_in
            and (gang not in known or gang in self._relaxed.gangs_in)
        ]
        missing.sort(key=lambda gang: (-self._gangs[gang].weight, gang))
        spans = {gang: spans_pods(self._gangs[gang]) for gang in missing}
        one_by_one = [gang for gang in missing if spans[gang]]
        together = [gang for gang in missing if not spans[gang]]
        progress = place_in_turn(progress, one_by_one, self._nodes)
        return place_in_parts(progress, together, self._nodes)

    def _place_rest(self, progress: Progress, gangs: Sequence[int]) -> Progress:
        """Let the engine that is made for them decide gangs on what is left."""
        progress = progress.occupy()
        tight = [gang for gang in gangs if gang in self._tightened]
        asked = {gang: self._gangs[gang] for gang in set(gangs).difference(tight)}
        if tight:
            tightened = tighten(progress.problem, [self._gangs[gang] for gang in tight])
            asked |= {tight[n]: gang for n, gang in tightened.gangs.items()}
            effort = progress.effort.plus(tightened.effort)
            progress = structs.replace(progress, effort=effort)
        if not asked:
            return progress
        numbers = sorted(asked)
        result = self._ask(progress.problem, [asked[gang] for gang in numbers])
        return progress.add(numbers, result)

    def _ask(self, problem: Problem, gangs: Iterable[GangPart]) -> EngineResult:
        """Let the engine decide that is made for some gangs, if nobody asked before."""
        demand = Demand(gangs, expected=problem.expected)
        for known, asked, result in self._answers:
            if known is problem and asked == demand.gangs:
                return structs.replace(result, effort=Effort())
        kinds = find_node_kinds(problem, demand.query)
        _, result = self._decide(problem, demand, kinds)
        self._answers.append((problem, demand.gangs, result))
        return result

    def _weigh(self, progress: Progress, priorities: Iterable[int]) -> list[int]:
        """Weigh who is in by priority, then second choices and missed preferences."""
        found = progress.placements
        pods = (pod for gang in found for own in gang.members for pod in own)
        return [
            *(weight_in(self._demand, found, priority) for priority in priorities),
            -sum(sum(pod.alternatives) for pod in pods),
            -count_preference_cost(self._demand, self._kinds, found),
        ]

    def _is_best(self, progress: Progress, priorities: Sequence[int]) -> bool:
        best = self._bound_levels(progress, priorities).values()
        return self._weigh(progress, priorities) == [*best, 0, 0]

    # --- bound -----------------------------------------------------------------------

    @cached_property
    def _relaxed(self) -> _Relaxed:
        """Decide all gangs as if they had fewer rules: that is a bound."""
        loose = Demand(
            loosen(gang, keeps_labels=number not in self._beyond)
            for number, gang in enumerate(self._gangs)
        )
        kinds = find_node_kinds(self._problem, loose.query)
        unknown = find_gangs_beyond(loose, kinds)
        numbers = [n for n in range(len(self._gangs)) if n not in unknown]
        result = EngineResult(status=Status.OPTIMAL)
        if numbers:
            result = self._ask(self._problem, (loose.gangs[n] for n in numbers))
        self._effort = self._effort.plus(result.effort)
        gangs_in = {numbers[item.gang] for item in result.placements} | unknown
        weights, bounds = self._count_weights(gangs_in), dict[int, int]()
        more = self._count_weights(unknown)
        for priority, most in self._count_weights(range(len(self._gangs))).items():
            known = weights[priority] - more[priority]
            bound = result.bounds.get((Tier.GANGS, priority), known)
            bounds[priority] = most
            if bound is not None:
                bounds[priority] = min(most, bound + more[priority])
        return _Relaxed(weights, bounds, frozenset(gangs_in))

    def _bound_levels(
        self, progress: Progress, priorities: Iterable[int]
    ) -> dict[Goal, int | None]:
        """Bound the weight of some priorities beside what is reached above them."""
        most = self._count_weights(range(len(self._gangs)))
        reached = self._count_weights(progress.gangs_in)
        bounds: dict[Goal, int | None] = {}
        for priority in priorities:
            bound = most[priority]
            # The relaxed bound is about answers that reach what that did above it.
            if reached[priority] < bound and all(
                reached[p] == self._relaxed.weights[p] for p in most if p > priority
            ):
                bound = self._relaxed.bounds[priority]
            bounds[Tier.GANGS, priority] = bound
        return bounds

    def _count_weights(self, gangs: Iterable[int]) -> Counter[int]:
        """Add up the weights of some gangs by priority; of the others it is 0."""
        weights = Counter(dict.fromkeys((g.priority for g in self._gangs), 0))
        for gang in gangs:
            weights[self._gangs[gang].priority] += self._gangs[gang].weight
        return weights
