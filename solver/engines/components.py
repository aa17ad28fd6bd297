"""Batches that pass a limit of the pattern engine, decided in parts that do not touch.

Gangs touch where their pods could be on nodes of one kind, by counting. What does not
touch is decided apart: values and bounds add up, and what is too large in one part
drags no other along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

from msgspec import structs

from solver.decision import Status, TierValue
from solver.engines.choose import Decided, EngineChoice
from solver.engines.goals import Effort, EngineResult, Goal, goals_of
from solver.engines.tier_values import tier_values_of
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.problem import Parameters, Problem
from solver.tiers import Tier

COMPONENTS = "components"
MOST_AT_ONCE = 16
"""Parts that one batch becomes at most; one that is still too large is parted again."""
DecideComponent = Callable[[Problem, Demand, tuple[NodeKind, ...], Parameters], Decided]
"""Decides gangs on the nodes that they could be on."""


def find_components(
    demand: Demand, kinds: Sequence[NodeKind]
) -> tuple[tuple[int, ...], ...]:
    """Find the gangs that touch, directly or by others; first gangs first.

    All are one where pods have rules over several nodes, or devices are seen by
    several.
    """
    everybody = tuple(range(len(demand.gangs)))
    query = demand.query
    if query.domains or query.counted or demand.gang_rules or demand.is_elastic:
        return (everybody,)
    if any(group.identity for kind in kinds for group in kind.shape.groups):
        return (everybody,)
    nodes_of = find_able_nodes(demand, kinds)
    # First what each gang kind touches; then those that touch the same become one.
    components: list[tuple[int, list[int]]] = []
    for gang_kind, gangs in demand.gang_kinds.items():
        touched = reduce(or_, (nodes_of[m] for m, _ in gang_kind.members), 0)
        together, apart = list(gangs), []
        for others_touched, others in components:
            if touched & others_touched:
                touched |= others_touched
                together += others
            else:
                apart.append((others_touched, others))
        components = [*apart, (touched, together)]
    return _merge([gangs for _, gangs in components])


def find_able_nodes(demand: Demand, kinds: Sequence[NodeKind]) -> list[int]:
    """Find the kinds of nodes that could hold a pod, by counting: a bit for each.

    For each kind of pod. Most kinds of nodes may lack its devices, as where each gang
    asks for devices of its own: those are passed over by what a group is for.
    """
    by_devices: dict[int, int] = {}
    for number, kind in enumerate(kinds):
        for group in kind.shape.groups:
            by_devices[group.mask] = by_devices.get(group.mask, 0) | 1 << number
    found = []
    for member in demand.member_kinds:
        nodes = (1 << len(kinds)) - 1
        for request in range(member.requests):
            asked = [member.asks[ask].kind for ask in member.alternatives(request)]
            able = (
                n for mask, n in by_devices.items() if any(mask >> a & 1 for a in asked)
            )
            nodes &= reduce(or_, able, 0)
        found.append(
            sum(
                1 << number
                for number, kind in enumerate(kinds)
                if nodes >> number & 1 and bound_pods(member, kind.shape)
            )
        )
    return found


def _merge(components: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    """Put small ones together where they are many: nodes are read for each."""
    by_size = sorted(components, key=lambda gangs: (-len(gangs), min(gangs)))
    merged = by_size[:MOST_AT_ONCE]
    for number, gangs in enumerate(by_size[MOST_AT_ONCE:]):
        merged[-1 - number % (MOST_AT_ONCE // 2)].extend(gangs)
    return tuple(sorted(tuple(sorted(gangs)) for gangs in merged))


class ComponentSearch:
    """One batch; `run` it once."""

    def __init__(
        self,
        problem: Problem,
        demand: Demand,
        parameters: Parameters,
        decide: DecideComponent,
    ) -> None:
        self._problem = problem
        self._demand = demand
        self._parameters = parameters
        self._decide_component = decide
        self._placements: list[GangPlacement] = []
        self._tiers: list[dict[Goal, TierValue]] = []
        """Of each component what was reached of its goals."""
        self._effort = Effort()
        self._is_optimal = True

    def run(self, components: Iterable[Sequence[int]], reason: str) -> Decided:
        """Decide one component after the other, small ones first.

        Each may take its share of the work that others left. `reason`: why they are
        not decided together.
        """
        waiting = sorted(components, key=self._count_pods)
        while waiting:
            share = self._parameters.work_limit - self._effort.work
            self._decide_next(waiting.pop(0), max(0.0, share / (1 + len(waiting))))
        ordered = sorted(self._placements, key=lambda placement: placement.gang)
        return EngineChoice(COMPONENTS, reason), EngineResult(
            status=Status.OPTIMAL if self._is_optimal else Status.FEASIBLE,
            placements=tuple(ordered),
            bounds=self._bound_goals(),
            effort=self._effort,
        )

    def _bound_goals(self) -> dict[Goal, int | None]:
        """Add the bounds of all components up, as long as each was reached.

        Below that they hold no more: one component may give way to another. Then no
        more is in than all gangs.
        """
        bounds: dict[Goal, int | None] = {}
        is_reached = True
        for goal in goals_of(self._demand, self._parameters.last_tier):
            tier, priority = goal
            parts = [tiers[goal] for tiers in self._tiers if goal in tiers]
            known = [tier.bound for tier in parts if tier.bound is not None]
            bounds[goal] = sum(known) if len(known) == len(parts) else None
            if not is_reached:
                asked = (g.weight for g in self._demand.gangs if g.priority == priority)
                bounds[goal] = sum(asked) if tier is Tier.GANGS else None
            value = sum(tier.value for tier in parts)
            is_reached = is_reached and bounds[goal] == value
        return bounds

    def _count_pods(self, gangs: Sequence[int]) -> int:
        return sum(self._demand.gangs[gang].pods for gang in gangs)

    def _decide_next(self, gangs: Sequence[int], work_limit: float) -> None:
        """Decide one component on the nodes that its pods could be on."""
        expected = self._problem.expected if self._demand.expected else ()
        part = Demand((self._demand.gangs[gang] for gang in gangs), expected=expected)
        kinds = tuple(
            kind
            for kind in find_node_kinds(self._problem, part.query)
            if any(bound_pods(member, kind.shape) for member in part.member_kinds)
        )
        limited = structs.replace(self._parameters, work_limit=work_limit)
        _, result = self._decide_component(self._problem, part, kinds, limited)
        self._effort = self._effort.plus(result.effort)
        self._is_optimal = self._is_optimal and result.status is Status.OPTIMAL
        self._placements.extend(
            GangPlacement(gangs[placement.gang], placement.members)
            for placement in result.placements
        )
        last = self._parameters.last_tier
        values = tier_values_of(part, part, kinds, result, last)
        self._tiers.append({(tier.tier, tier.priority): tier for tier in values})
