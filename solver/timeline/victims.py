"""Who would have to end for a gang that waits: the cheapest set of whole gangs.

Logic-based Benders decomposition. Counting (`counting.py`) bounds every region from
below; the region that may be cheapest is solved (`cheapest.py`), and the engines are
asked whether the gang then fits. A yes is the answer, proven, since nothing cheaper
passes the counts; a no becomes a cut, as strong as a few further questions make it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heappop, heappush
from math import floor, inf
from typing import Any

from msgspec import Struct

from contracts.ids import GangKey, NodeName
from contracts.lifecycle import GangRecord
from solver.engines.cpsat import Infeasible
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.snapshot.pages import Page
from solver.snapshot.snapshot import Snapshot
from solver.tiers import Tier
from solver.timeline.asking import Asker, Asking, Fit, read_fit
from solver.timeline.candidates import (
    NOBODY,
    Candidate,
    VictimCost,
    age_of,
    cost_of,
    may_end,
)
from solver.timeline.cheapest import (
    CheapestSet,
    Lack,
    Price,
    RegionModel,
    SolveLimits,
    bound_cost,
    bound_loss,
)
from solver.timeline.counting import Counts, Region, count_room
from solver.timeline.futures import Members, without_gangs
from solver.timeline.holdings import Holding, read_holding

MOST_SETS = 48
"""Sets that the engines are asked about before a set is only made smaller."""
MOST_GROWN = 16
"""Questions that make one cut stronger."""
MOST_REDUCED = 64
"""Questions by which a set is made smaller."""
MOST_WORK = 16.0
"""CP-SAT's deterministic time for all regions together."""


class Victims(Struct, frozen=True, kw_only=True):
    """Whose end lets a gang in."""

    victims: tuple[Candidate, ...]
    """The youngest first; none where the gang fits as it is, or nothing helps."""
    members: Members
    """Where the gang then goes; empty: no set of gangs is known to let it in."""
    proven: bool
    """True if no cheaper set does; without members, if none does."""
    cost: VictimCost
    bound: VictimCost
    """No set that lets the gang in costs less."""

    def __bool__(self) -> bool:
        return bool(self.members)


def find_victims(
    snapshot: Snapshot,
    waits: GangRecord,
    asker: Asker,
    candidates: Collection[Candidate],
    now_s: float,
) -> Asking[Victims]:
    """Find the cheapest gangs whose end lets another in.

    Of the candidates only those may end that `may_end` allows.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    allowed = [each for each in candidates if may_end(each.record, waits)]

    def question(ended: Iterable[Candidate]) -> Problem:
        later = without_gangs(snapshot, (each.record for each in ended))
        return asker.question(later, waits, Tier.GANGS)

    holdings = {
        each.record.key: read_holding(snapshot, each.record) for each in allowed
    }
    search = VictimSearch(question, waits.key, allowed, holdings, now_s)
    return (yield from search.run())


Key = tuple[Any, ...]
"""Of what is bounded or known: priority, then the sums, then the youngest."""


class _Open(Struct, frozen=True):
    """A region with what is known of it: a bound, or the cheapest set by counting."""

    level: int
    """The highest priority that may end."""
    region: int
    chosen: CheapestSet | None = None
    is_last: bool = False
    """True if it is the youngest of its sums."""


class VictimSearch:
    """One search, in whatever cluster its questions are about."""

    def __init__(
        self,
        question: Callable[[Iterable[Candidate]], Problem],
        gang: GangKey,
        candidates: Iterable[Candidate],
        holdings: Mapping[GangKey, Holding],
        now_s: float,
    ) -> None:
        """Prepare a search.

        `question`: what is asked once some have ended; `holdings`: what their ends give
        back, at most.
        """
        self._question, self._key = question, gang
        self._candidates = sorted(candidates, key=age_of)
        self._holdings = [holdings[each.record.key] for each in self._candidates]
        self._now_s = now_s
        self._prices = [
            Price(each.priority, (each.lost_s(now_s), 1, each.devices))
            for each in self._candidates
        ]
        self._levels = [NOBODY, *sorted({price.priority for price in self._prices})]
        self._problem = question(())
        (self._gang,) = (g for g in self._problem.gangs if g.key == gang)
        self._is_monotone = _is_monotone(self._gang, self._problem)
        self._lacks: list[Lack] = []
        self._heap: list[tuple[Key, int, _Open]] = []
        self._pushed = 0
        self._work = 0.0
        self._proven = True
        self._counts = Counts((), (Region(()),))

    def run(self) -> Asking[Victims]:
        """Find the cheapest set."""
        if not self._gang.refused:
            self._counts = count_room(self._problem, self._gang, self._holdings)
        for number, region in enumerate(self._counts.regions):
            bound = bound_cost(self._counts, region, self._prices)
            if bound is not None:
                self._push(bound, _Open(bound[0], number))
        tried, reached = 0, VictimCost()
        while self._heap and tried < MOST_SETS and self._work < MOST_WORK:
            key, _, opened = heappop(self._heap)
            chosen = opened.chosen
            if self._proven:
                reached = _bound_of(key)
            if chosen is None or self._is_forbidden(chosen.ended):
                self._solve(opened)
            elif not opened.is_last:
                self._make_last(opened, chosen)
            else:
                tried += 1
                fit = yield from self._ask(chosen.ended, chosen.nodes)
                if fit:
                    return self._answer(chosen.ended, fit, reached)
                yield from self._learn(chosen.ended, is_known=fit.proven)
                self._push(key[:2], _Open(opened.level, opened.region))
        if not self._heap and self._proven:
            fit = Fit(members=(), proven=True)
            return self._answer(frozenset(), fit, reached)
        self._proven = False
        return (yield from self._reduce(reached))

    # --- what counting and cuts say --------------------------------------------------

    def _push(self, key: Key, opened: _Open) -> None:
        self._pushed += 1
        heappush(self._heap, (key, self._pushed, opened))

    def _is_forbidden(self, ended: frozenset[int]) -> bool:
        return any(lack.forbids(ended) for lack in self._lacks)

    def _model(self, opened: _Open) -> RegionModel:
        region = self._counts.regions[opened.region]
        return RegionModel(
            self._counts, region, self._prices, opened.level, self._lacks
        )

    def _solve(self, opened: _Open) -> None:
        """Find the cheapest set of a region by counting, up to a priority."""
        known = [
            each.chosen.sums
            for _, _, each in self._heap
            if each.chosen is not None
            and each.level == opened.level
            and not self._is_forbidden(each.chosen.ended)
        ]
        below = min(known, default=None)
        outcome, work = self._model(opened).choose(below, self._limits)
        self._work += work
        level = opened.level
        if isinstance(outcome, CheapestSet):
            self._proven &= outcome.proven
            self._push((level, *outcome.sums), _Open(level, opened.region, outcome))
        elif isinstance(outcome, Infeasible) and below is not None:
            lost, gangs, devices = below
            self._push((level, lost, gangs, devices + 1), opened)
        else:
            self._proven &= isinstance(outcome, Infeasible)
            self._raise_level(opened)

    def _raise_level(self, opened: _Open) -> None:
        """Go on with a region where gangs of the next priority may end, too."""
        higher = [level for level in self._levels if level > opened.level]
        if higher:
            region = self._counts.regions[opened.region]
            lost = bound_loss(self._counts, region, self._prices, higher[0])
            self._push((higher[0], lost), _Open(higher[0], opened.region))

    def _make_last(self, opened: _Open, chosen: CheapestSet) -> None:
        """Find the youngest of the sets that cost the same by their sums."""
        order = range(len(self._candidates))
        model = self._model(opened)
        younger, work = model.choose_younger(chosen, order, self._limits)
        self._work += work
        self._proven &= younger is not None
        last = younger or chosen
        youngest = tuple(age_of(self._candidates[gang]) for gang in sorted(last.ended))
        self._push(
            (opened.level, *last.sums, youngest),
            _Open(opened.level, opened.region, last, is_last=True),
        )

    @property
    def _limits(self) -> SolveLimits:
        parameters = self._problem.parameters
        limit = min(parameters.work_limit, max(MOST_WORK - self._work, 0.1))
        return SolveLimits(limit, parameters.seed)

    # --- what the engines say --------------------------------------------------------

    def _ask(
        self, ended: frozenset[int], nodes: Collection[NodeName] = ()
    ) -> Asking[Fit]:
        """Ask whether the gang fits once some have ended: at first on a few nodes."""
        problem = self._question(self._candidates[gang] for gang in sorted(ended))
        if nodes and is_local(problem):
            fit = read_fit((yield keep_nodes(problem, nodes)), self._key)
            if fit:
                return fit
        return read_fit((yield problem), self._key)

    def _learn(self, ended: frozenset[int], *, is_known: bool) -> Asking[None]:
        """Note that a set is not enough, and which larger ones are not either."""
        if not (is_known and self._is_monotone):
            self._proven &= is_known
            self._lacks.append(Lack(ended, is_final=False))
            return
        everybody = frozenset(range(len(self._candidates)))
        open_parts, asked = [sorted(everybody - ended)], 0
        while open_parts and asked < MOST_GROWN:
            part = open_parts.pop()
            larger = ended.union(part)
            fit = yield from self._ask(larger)
            asked += 1
            if not fit and fit.proven:
                ended = larger
            elif len(part) > 1:
                half = len(part) // 2
                open_parts += [part[half:], part[:half]]
        self._lacks.append(Lack(ended, is_final=True))

    def _reduce(self, reached: VictimCost) -> Asking[Victims]:
        """Make the set of all who may end smaller: an answer that is not proven."""
        ended, fit, asked = frozenset[int](), Fit(members=(), proven=False), 0
        for level in self._levels:
            ended = frozenset(
                gang for gang, p in enumerate(self._prices) if p.priority <= level
            )
            fit = yield from self._ask(ended)
            if fit:
                break
        if not fit:
            return self._answer(frozenset(), fit, reached)
        dearest = sorted(ended, key=lambda g: (self._prices[g].sums, -g))
        parts = [dearest]
        while parts and asked < MOST_REDUCED:
            part = parts.pop()
            smaller = ended.difference(part)
            found = yield from self._ask(smaller)
            asked += 1
            if found:
                ended, fit = smaller, found
            elif len(part) > 1:
                half = len(part) // 2
                parts += [part[:half], part[half:]]
        return self._answer(ended, fit, reached)

    def _answer(self, ended: frozenset[int], fit: Fit, reached: VictimCost) -> Victims:
        victims = tuple(self._candidates[gang] for gang in sorted(ended))
        cost = cost_of(victims, self._now_s)
        bound = cost if self._proven else reached
        return Victims(
            victims=victims,
            members=fit.members,
            proven=self._proven,
            cost=cost,
            bound=bound,
        )


def _bound_of(key: Key) -> VictimCost:
    """Return what a key bounds: the priority and the loss."""
    level, lost_s = key[:2]
    return VictimCost(priority=level, lost_s=floor(lost_s) if lost_s < inf else 0)


def _is_monotone(gang: GangPart, problem: Problem) -> bool:
    """True if whatever ends besides can do no harm.

    Other pods may be wanted nearby, or counted where pods are spread; with its gang a
    claim goes that this one names; and room for another gang may not be for this one.
    """
    return len(problem.gangs) == 1 and not any(
        member.pod_rules.near
        or member.pod_rules.spread
        or any(claim.claim_name for claim in member.claims)
        for member in gang.members
    )


def is_local(problem: Problem) -> bool:
    """True if a gang that fits on some nodes fits where there are others, too."""
    if problem.neighbours or len(problem.gangs) > 1:
        return False
    return not any(
        gang.standing or member.pod_rules.spread or member.pod_rules.near
        for gang in problem.gangs
        for member in gang.members
    )


def keep_nodes(problem: Problem, nodes: Collection[NodeName]) -> Problem:
    """Leave of a cluster some nodes, and what is no node's."""
    kept = {str(node) for node in nodes} | {""}
    pages = [
        {owner: parts for owner, parts in page.nodes.items() if owner in kept}
        for page in problem.pages
    ]
    return problem.with_pages(tuple(Page(nodes) for nodes in pages if nodes))
