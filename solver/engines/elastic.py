"""Batches in which gangs may be in with fewer pods than they ask for, made rigid.

Who is in comes strictly before how many extra pods there are. So each gang is asked for
with the pods that it needs, and each further pod as a gang of its own, of a priority
below all others: then every engine decides both, in that order. Where extra pods of
gangs that are not in take room, it is asked once more about those that are in. What was
reached without that link is a bound. A gang whose rules span pods is tried with all its
pods, then grows while the others stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from msgspec import Struct, structs

from solver.decision import Status
from solver.engines.choose import Decided, EngineChoice
from solver.engines.direct.part import place_part
from solver.engines.goals import Effort, EngineResult, Goal
from solver.engines.taking import take
from solver.engines.tier_values import extra_in, join_parts, weight_in
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.topology import spans_pods
from solver.placement import GangPlacement, PodPlacement
from solver.problem.gangs import GangPart
from solver.problem.growth.grow import MOST_EXTRA, MOST_GROWN
from solver.problem.problem import Problem
from solver.stopping import is_stopped
from solver.tiers import Tier

DecideRigid = Callable[[Problem, Demand], Decided]
"""Asks the engines that are made for a batch without elastic gangs."""
Placed = dict[int, GangPlacement]
"""By gang of the whole batch."""


class _ExtraPod(Struct, frozen=True):
    """One pod without which its gang would be in, too."""

    gang: int
    member: int
    part: GangPart
    """The pod as a gang of its own."""


class _Attempted(Struct, frozen=True):
    """What came of asking about some gangs, each with extra pods beside it."""

    placed: Placed
    """Without pods of gangs that are not in."""
    decided: Decided
    reached: Counter[Goal]
    """What was reached of gangs and extra pods, before those were left out."""
    is_linked: bool
    """True if no such pod was left out."""
    is_whole: bool
    """True if all extra pods were asked for."""


class ElasticSearch:
    """One batch; `run` it once."""

    def __init__(self, problem: Problem, demand: Demand, decide: DecideRigid) -> None:
        self._problem = problem
        self._demand = demand
        self._gangs = demand.gangs
        self._decide = decide
        self._effort = Effort()
        self._growing = [
            gang
            for gang, part in enumerate(self._gangs)
            if part.is_elastic and spans_pods(part)
        ]
        self._priorities = sorted({gang.priority for gang in self._gangs}, reverse=True)

    def run(self) -> Decided:
        """Decide who is in, then how many extra pods there are."""
        if self._growing:
            whole = self._ask_for_all()
            if whole is not None:
                return whole
        first = self._ask(range(len(self._gangs)))
        placed = first.placed
        if not first.is_linked and placed:
            again = self._ask(sorted(placed))
            placed = max((again.placed, placed), key=self._value_of)
        if first.is_linked and first.is_whole and not self._growing:
            return self._to_proven(first)
        placed = self._grow(placed)
        kinds = find_node_kinds(self._problem, self._demand.query)
        bounds = self._bounds_of(placed, first)
        return first.decided[0], join_parts(
            self._demand, kinds, placed.values(), bounds, self._effort
        )

    # --- asking -----------------------------------------------------------------------

    def _ask_for_all(self) -> Decided | None:
        """Ask for all pods of all gangs; None: not all of them are placed."""
        gangs = tuple(_whole(gang) for gang in self._gangs)
        choice, result = self._decide_gangs(gangs)
        is_all = len(result.placements) == len(gangs)
        if not is_all or result.status is not Status.OPTIMAL:
            return None
        return choice, structs.replace(result, effort=self._effort)

    def _ask(self, numbers: Sequence[int]) -> _Attempted:
        """Ask for some gangs, and for extra pods of those without spanning rules."""
        asked = [number for number in numbers if not self._gangs[number].is_in]
        cores = [self._gangs[number].core for number in asked]
        extra, is_whole = self._choose_extra(numbers)
        decided = self._decide_gangs((*cores, *(pod.part for pod in extra)))
        placed: dict[int, list[list[PodPlacement]]] = {
            number: [[] for _ in self._gangs[number].members]
            for number in numbers
            if self._gangs[number].is_in
        }
        for item in decided[1].placements:
            if item.gang < len(asked):
                placed[asked[item.gang]] = [list(pods) for pods in item.members]
        # Then each extra pod goes to its gang, if that is in.
        reached, is_linked = Counter[Goal](), True
        for item in decided[1].placements:
            if item.gang >= len(asked):
                pod = extra[item.gang - len(asked)]
                priority = self._gangs[pod.gang].priority
                reached[Tier.EXTRA, priority] += pod.part.weight
                if pod.gang in placed:
                    placed[pod.gang][pod.member].extend(item.members[0])
                else:
                    is_linked = False
        grown = {
            number: GangPlacement(number, tuple(map(tuple, members)))
            for number, members in placed.items()
        }
        return _Attempted(grown, decided, reached, is_linked, is_whole)

    def _choose_extra(self, numbers: Sequence[int]) -> tuple[list[_ExtraPod], bool]:
        """Choose the extra pods to ask for; and whether that is all of them.

        One of each member is: whoever gets none has no place for any.
        """
        by_urgency = sorted(numbers, key=lambda number: -self._gangs[number].priority)
        every = list(chain.from_iterable(map(self._list_extra, by_urgency)))
        extra: list[_ExtraPod] = []
        left = MOST_EXTRA - len(every)
        for pod, count in every:
            further = max(min(count - 1, left), 0)
            extra += [pod] * (1 + further)
            left -= further
        return extra, len(extra) == sum(count for _, count in every)

    def _list_extra(self, number: int) -> Iterator[tuple[_ExtraPod, int]]:
        """Go through the extra pods of a gang, by member: one, and how many alike."""
        gang = self._gangs[number]
        if spans_pods(gang):
            return
        for place, member in enumerate(gang.members):
            alone = structs.replace(
                gang,
                priority=self._priority_below(gang.priority),
                weight=member.worth,
                members=(structs.replace(member, count=1, min_count=None),),
            )
            if member.least < member.count:
                yield _ExtraPod(number, place, alone), member.count - member.least

    def _priority_below(self, priority: int) -> int:
        """Return the priority of extra pods: that of their gangs, below all gangs."""
        return self._priorities[-1] - 1 - self._priorities.index(priority)

    def _decide_gangs(self, gangs: tuple[GangPart, ...]) -> Decided:
        if not gangs:
            return EngineChoice(), EngineResult(status=Status.OPTIMAL)
        demand = Demand(gangs, expected=self._problem.expected)
        decided = self._decide(self._problem.with_gangs(gangs), demand)
        self._effort = self._effort.plus(decided[1].effort)
        return decided

    # --- gangs whose rules span pods --------------------------------------------------

    def _grow(self, placed: Placed) -> Placed:
        """Let gangs whose rules span pods grow in turn, while all others stay."""
        growing = [number for number in self._growing if number in placed]
        growing.sort(key=lambda number: (-self._gangs[number].priority, number))
        for number in growing[:MOST_GROWN]:
            if is_stopped():
                break
            others = (
                (self._gangs[other], item)
                for other, item in sorted(placed.items())
                if other != number
            )
            grown = self._grow_one(take(self._problem, others), number)
            if grown is not None:
                placed = {**placed, number: grown}
        return placed

    def _grow_one(self, problem: Problem, number: int) -> GangPlacement | None:
        """Find the most extra pods with which a gang has a place; None: none has.

        They come member by member; with fewer it has a place where it has with more.
        """
        gang = self._gangs[number]
        sizes = [member.count - member.least for member in gang.members]
        fits, too_many, best = 0, sum(sizes) + 1, None
        tried = too_many - 1
        while too_many - fits > 1:
            found = self._place(problem, _with_extra(gang, tried))
            if found is None:
                too_many = tried
            else:
                fits, best = tried, GangPlacement(number, found.members)
            tried = (fits + too_many) // 2
        return best

    def _place(self, problem: Problem, gang: GangPart) -> GangPlacement | None:
        result = place_part(problem, (gang,))
        self._effort = self._effort.plus(result.effort)
        return next(iter(result.placements), None)

    # --- what it is worth -------------------------------------------------------------

    def _value_of(self, placed: Placed) -> list[int]:
        """Weigh who is in, then the extra pods, by priority."""
        found = placed.values()
        return [
            *(weight_in(self._demand, found, p) for p in self._priorities),
            *(extra_in(self._demand, found, p) for p in self._priorities),
        ]

    def _bounds_of(self, placed: Placed, first: _Attempted) -> dict[Goal, int | None]:
        """Bound gangs and extra pods by what was found of them without the link."""
        result, bounds = first.decided[1], dict[Goal, int | None]()
        is_counted = first.is_whole and not self._growing
        found, is_bound = placed.values(), True
        for priority in self._priorities:
            goal: Goal = (Tier.GANGS, priority)
            value = weight_in(self._demand, found, priority)
            bounds[goal] = result.bounds.get(goal, value) if is_bound else None
            # A bound below holds for answers that reach what was reached above it.
            core = weight_in(self._demand, first.placed.values(), priority)
            is_bound = is_bound and value == core
        for priority in self._priorities:
            most = sum(
                member.worth * (member.count - member.least)
                for gang in self._gangs
                if gang.priority == priority
                for member in gang.members
            )
            if not most:
                continue
            goal = (Tier.EXTRA, priority)
            value = extra_in(self._demand, found, priority)
            reached = first.reached[goal]
            below: Goal = (Tier.GANGS, self._priority_below(priority))
            known = result.bounds.get(below, reached)
            is_known = is_bound and is_counted and known is not None
            bounds[goal] = known if is_known else most
            is_bound = is_bound and value == reached
        return bounds

    def _to_proven(self, asked: _Attempted) -> Decided:
        """Return an answer in which all pods belong to gangs that are in."""
        choice, result = asked.decided
        later = {
            goal: bound
            for goal, bound in result.bounds.items()
            if goal[0] is not Tier.GANGS
        }
        return choice, structs.replace(
            result,
            placements=tuple(item for _, item in sorted(asked.placed.items())),
            bounds={**self._bounds_of(asked.placed, asked), **later},
            effort=self._effort,
        )


def _whole(gang: GangPart) -> GangPart:
    """Ask for all pods of a gang or none."""
    return _with_extra(
        gang, sum(member.count - member.least for member in gang.members)
    )


def _with_extra(gang: GangPart, extra: int) -> GangPart:
    """Ask for so many extra pods beside those that a gang needs, or for none at all."""
    asked = gang.with_extra(extra)
    members = (structs.replace(member, min_count=None) for member in asked.members)
    return structs.replace(asked, members=tuple(members))
