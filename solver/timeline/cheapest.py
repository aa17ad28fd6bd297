"""The cheapest set of gangs whose end makes room in a region, by counting and cuts.

CP-SAT chooses the gangs; the cost's parts are minimized in their order, as many at once
as one whole number can weigh. What no counting sees is learned from cuts. Limited in
work, so an answer depends on its input alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from msgspec import Struct

from contracts.ids import NodeName
from solver.engines.cp_model import CpModel, IntVar
from solver.engines.cpsat import Infeasible, Outcome, Solved, Term, solve, total
from solver.timeline.candidates import NOBODY
from solver.timeline.counting import Counts, Limit, NodeRoom, Region

Sums = tuple[int, int, int]
"""Device-seconds lost, gangs, devices."""
LARGEST = 1 << 50
"""Up to here several sums are weighed against each other in one objective."""
SLIGHT = 1e-9
"""How much sums of fractions may be off."""
YOUNG = 40
"""Gangs whose order by age is weighed in one objective."""


class Price(Struct, frozen=True):
    """What the end of one gang costs."""

    priority: int
    sums: Sums


class Lack(Struct, frozen=True):
    """A set that is known not to be enough."""

    ended: frozenset[int]
    is_final: bool
    """True if none of its subsets is enough either."""

    def forbids(self, ended: frozenset[int]) -> bool:
        """True if by this a set is not enough."""
        return ended <= self.ended if self.is_final else ended == self.ended


class CheapestSet(Struct, frozen=True):
    """A set of gangs, and the nodes that then hold the gang that waits."""

    ended: frozenset[int]
    sums: Sums
    nodes: frozenset[NodeName]
    proven: bool
    """True if no other set costs less by its sums."""


def bound_cost(
    counts: Counts, region: Region, prices: Sequence[Price]
) -> tuple[int, float] | None:
    """Bound what a region costs: the highest priority, and what is lost.

    None: there is no room in it, whoever ends.
    """
    levels = [NOBODY, *sorted({prices[gang].priority for gang in region.gangs})]
    least, most = 0, len(levels)
    while least < most:
        middle = (least + most) // 2
        if _has_room(counts, region, prices, levels[middle]):
            most = middle
        else:
            least = middle + 1
    if least == len(levels):
        return None
    level = levels[least]
    return level, bound_loss(counts, region, prices, level)


def bound_loss(
    counts: Counts, region: Region, prices: Sequence[Price], level: int
) -> float:
    """Bound what is lost at least where gangs up to a priority may end."""
    kinds = range(len(counts.pods))
    return max(
        (_bound_kind(counts, region, prices, level, k) for k in kinds), default=0
    )


def _has_room(
    counts: Counts, region: Region, prices: Sequence[Price], level: int
) -> bool:
    """True if each kind of pod has room by itself once all up to a priority ended."""
    ended = {gang for gang in region.gangs if prices[gang].priority <= level}
    return all(
        pods <= sum(_count_pods(node, kind, ended) for node in region.nodes)
        for kind, pods in enumerate(counts.pods)
    )


def _count_pods(node: NodeRoom, kind: int, ended: set[int]) -> int:
    """Count the pods of a kind that a node holds at most once some have ended."""
    if any(pods == kind and gang not in ended for pods, gang in node.blocked):
        return 0
    room = dict(node.most).get(kind, 0)
    for limit in node.limits:
        need = dict(limit.needs).get(kind, 0)
        if need:
            given = sum(amount for gang, amount in limit.given if gang in ended)
            room = min(room, max(limit.left + given, 0) // need)
    return room


def _bound_kind(
    counts: Counts, region: Region, prices: Sequence[Price], level: int, kind: int
) -> float:
    """Bound the loss as if gangs could end in part, each node limited by one thing."""
    missing, given = float(counts.pods[kind]), dict[int, float]()
    for node in region.nodes:
        most = dict(node.most).get(kind, 0)
        limits = [(dict(limit.needs).get(kind, 0), limit) for limit in node.limits]
        limits = [(need, limit) for need, limit in limits if need]
        need, limit = min(
            limits,
            key=lambda pair: pair[1].left / pair[0],
            default=(1, Limit((), most)),
        )
        missing -= min(limit.left / need, most)
        for gang, amount in limit.given if limit.left / need < most else ():
            given[gang] = given.get(gang, 0.0) + amount / need
    if missing <= SLIGHT:
        return 0
    shares = sorted(
        (prices[gang].sums[0] / pods, pods, gang)
        for gang, pods in given.items()
        if prices[gang].priority <= level
    )
    lost = 0.0
    for each, pods, _ in shares:
        lost += each * min(pods, missing)
        missing -= pods
        if missing <= SLIGHT:
            return max(lost * (1 - SLIGHT) - SLIGHT, 0)
    return inf


class SolveLimits(Struct, frozen=True):
    """What each call of CP-SAT may spend."""

    work: float
    seed: int

    def solve(self, model: CpModel) -> Outcome:
        """Solve a model."""
        return solve(model, work_limit=self.work, seed=self.seed, feasibility=False)


class RegionModel:
    """Which gangs end and where the pods go, in one region."""

    def __init__(
        self,
        counts: Counts,
        region: Region,
        prices: Sequence[Price],
        level: int,
        lacks: Iterable[Lack],
    ) -> None:
        self._prices = prices
        self._model = CpModel()
        self._gangs: dict[int, IntVar] = {}
        self._pods: dict[NodeName, list[IntVar]] = {}
        self._ends = [each.priority <= level for each in prices]
        for gang in region.gangs:
            self._add_gang(gang)
        self._add_nodes(counts, region)
        for lack in lacks:
            self._forbid(lack)

    def _add_gang(self, gang: int) -> IntVar:
        variable = self._gangs.get(gang)
        if variable is None:
            most = int(self._ends[gang])
            variable = self._gangs[gang] = self._model.new_int_var(0, most, "")
        return variable

    def _add_nodes(self, counts: Counts, region: Region) -> None:
        """Let each node hold what its limits allow, and all of them the whole gang."""
        placed: list[list[Term]] = [[] for _ in counts.pods]
        for node in region.nodes:
            pods = {k: self._model.new_int_var(0, most, "") for k, most in node.most}
            self._pods[node.name] = list(pods.values())
            for kind, variable in pods.items():
                placed[kind].append((variable, 1))
            for limit in node.limits:
                needs = [(pods[kind], need) for kind, need in limit.needs]
                given = [(self._gangs[g], -amount) for g, amount in limit.given]
                self._model.add(total([*needs, *given]) <= limit.left)
            for kind, gang in node.blocked:
                most = dict(node.most)[kind]
                terms = [(pods[kind], 1), (self._gangs[gang], -most)]
                self._model.add(total(terms) <= 0)
        for terms, count in zip(placed, counts.pods, strict=True):
            self._model.add(total(terms) >= count)

    def _forbid(self, lack: Lack) -> None:
        """Leave out a set that is known not to be enough, with what it proves."""
        free = [gang for gang, ends in enumerate(self._ends) if ends]
        missing = [(self._add_gang(g), 1) for g in free if g not in lack.ended]
        if lack.is_final:
            self._model.add(total(missing) >= 1)
            return
        ended = [(self._add_gang(gang), -1) for gang in lack.ended]
        self._model.add(total([*missing, *ended]) >= 1 - len(ended))

    def choose(
        self, below: Sums | None, limits: SolveLimits
    ) -> tuple[CheapestSet | Infeasible | None, float]:
        """Choose the cheapest set that costs at most so much by its sums.

        None: neither a set nor a proof was found within the limit. And the work.
        """
        proven, work = True, 0.0
        solved: Solved | None = None
        for weights, most in self._weigh(below):
            terms = [(self._gangs[gang], weight) for gang, weight in weights.items()]
            if most is not None:
                self._model.add(total(terms) <= most)
            self._model.minimize(total(terms))
            outcome = limits.solve(self._model)
            work += outcome.work
            if isinstance(outcome, Infeasible) and solved is None:
                return outcome, work
            if not isinstance(outcome, Solved):
                found = None if solved is None else self._read(solved, proven=False)
                return found, work
            solved, proven = outcome, proven and outcome.optimal
            reached = sum(outcome.value(v) * weight for v, weight in terms)
            self._model.add(total(terms) <= reached)
        return None if solved is None else self._read(solved, proven=proven), work

    def choose_younger(
        self, chosen: CheapestSet, order: Sequence[int], limits: SolveLimits
    ) -> tuple[CheapestSet | None, float]:
        """Choose among sets of equal sums that with the youngest gangs.

        `order`: all gangs, the youngest first. None: not found within the limit. And
        the work.
        """
        self._model.proto.clear_objective()
        for part in range(3):
            terms = [(v, self._prices[g].sums[part]) for g, v in self._gangs.items()]
            self._model.add(total(terms) <= chosen.sums[part])
        own = [(v, 1 if g in chosen.ended else -1) for g, v in self._gangs.items()]
        other = CpModel()
        other.proto.copy_from(self._model.proto)
        other.add(total(own) <= len(chosen.ended) - 1)
        outcome = limits.solve(other)
        work = outcome.work
        if isinstance(outcome, Infeasible):
            return chosen, work
        if not isinstance(outcome, Solved):
            return None, work
        known = [gang for gang in order if gang in self._gangs]
        for start in range(0, len(known), YOUNG):
            part_of = known[start : start + YOUNG]
            worth = [(self._gangs[g], 1 << (YOUNG - i)) for i, g in enumerate(part_of)]
            self._model.maximize(total(worth))
            outcome = limits.solve(self._model)
            work += outcome.work
            if not isinstance(outcome, Solved) or not outcome.optimal:
                return None, work
            for gang in part_of:
                variable = self._gangs[gang]
                self._model.add(total([(variable, 1)]) == outcome.value(variable))
        return self._read(outcome, proven=True), work

    def _weigh(self, below: Sums | None) -> list[tuple[dict[int, int], int | None]]:
        """Weigh the sums against each other, as many at once as a number holds.

        With the first weighing: what it may come to at most.
        """
        sums = {gang: self._prices[gang].sums for gang in self._gangs}
        largest = [sum(of[part] for of in sums.values()) for part in range(3)]
        allowed = largest if below is None else _clip(below, largest)
        weighings: list[tuple[dict[int, int], int | None]] = []
        weights, reach, most = dict.fromkeys(sums, 0), 0, 0
        for part in range(3):
            step = largest[part] + 1
            if reach and reach * step + largest[part] > LARGEST:
                weighings.append((weights, None if weighings else most))
                weights, reach, most = dict.fromkeys(sums, 0), 0, 0
            weights = {g: w * step + sums[g][part] for g, w in weights.items()}
            reach = reach * step + largest[part]
            most = most * step + allowed[part]
        return [*weighings, (weights, None if weighings else most)]

    def _read(self, solved: Solved, *, proven: bool) -> CheapestSet:
        ended = frozenset(g for g, v in self._gangs.items() if solved.value(v))
        used = (n for n, pods in self._pods.items() if any(map(solved.value, pods)))
        return CheapestSet(
            ended, sum_prices(self._prices, ended), frozenset(used), proven
        )


def _clip(below: Sums, largest: Sequence[int]) -> list[int]:
    """Return the largest sums that cost no more: once one is smaller, any will do."""
    for part in range(3):
        if below[part] > largest[part]:
            return [*below[:part], *largest[part:]]
    return list(below)


def sum_prices(prices: Sequence[Price], ended: Iterable[int]) -> Sums:
    """Add up what the end of some gangs costs."""
    sums = [prices[gang].sums for gang in ended]
    lost, gangs, devices = (sum(each[part] for each in sums) for part in range(3))
    return lost, gangs, devices
