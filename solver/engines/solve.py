"""One answer to a Problem, from whichever engine decides it.

First counting alone: gangs that no node set could hold are out. Then the pattern
engine, unless something in the batch reaches over nodes: the direct model states every
rule and is the reference. Limits are work units, so the answer is a function of the
Problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct, structs

from solver.decision import Statistics, Status, TierValue
from solver.engines.apart import ApartSearch, can_be_apart, find_gangs_apart
from solver.engines.choose import (
    DIRECT,
    PACKING,
    PATTERN,
    Decided,
    EngineChoice,
    choose_engine,
    count_pairs,
    is_small,
)
from solver.engines.direct.search import DirectSearch
from solver.engines.elastic import ElasticSearch
from solver.engines.first_fit import at_least_constructed
from solver.engines.goals import Effort, EngineResult
from solver.engines.leftover import LeftoverSearch
from solver.engines.packing.search import PackingSearch
from solver.engines.pattern.search import PatternSearch
from solver.engines.tier_values import better_of, tier_values_of
from solver.engines.truncated import TruncatedSearch
from solver.errors import NotPackableError, PatternLimitError
from solver.kinds.common_values import CommonValues
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind, NodeShape
from solver.kinds.sharing import SharedClaimLayouts
from solver.placement import GangPlacement
from solver.problem.problem import Parameters, Problem
from solver.stopping import is_stopped
from solver.tiers import Tier

MANY = 16
"""Pods of a batch for which the parts of nodes are looked at first."""
CROWD = 2
"""Nodes for each pod up to which it pays to look at all of them."""
SMALL = 1_000
"""Pods times nodes of a batch that the direct model decides soon."""
SMALL_WORK = 1.0


class Answer(Struct, frozen=True, kw_only=True):
    """What was decided for the gangs of a Problem."""

    status: Status
    placements: tuple[GangPlacement, ...]
    hopeless: tuple[int, ...]
    """Gangs that do not fit even alone, by counting; indices into the demand."""
    tiers: tuple[TierValue, ...]
    statistics: Statistics


def answer(problem: Problem, engine: str | None = None) -> Answer:
    """Decide the batch; `engine` is asked instead of the one that would be chosen."""
    sharing = SharedClaimLayouts(problem)
    asked = [gang for gang in problem.gangs if not gang.refused]
    problem, expected = sharing.problem, problem.expected
    demand = Demand(problem.gangs, expected=expected)
    kinds = find_node_kinds(problem, demand.query)
    # First leave out the gangs that no set of nodes could hold, by counting alone: an
    # engine would need a proof for each.
    hopeless = _hopeless_gangs(demand, kinds)
    hopeful_gangs = sorted(set(range(len(demand.gangs))).difference(hopeless))
    hopeful = demand
    if hopeless:
        gangs = (demand.gangs[gang] for gang in hopeful_gangs)
        hopeful = Demand(gangs, expected=expected)
    # Then count nodes again where the rest asks less: fewer kinds are smaller models.
    if hopeless and hopeful.gangs and hopeful.query != demand.query:
        kinds = find_node_kinds(problem, hopeful.query)
    choice, result = EngineChoice(), EngineResult(status=Status.OPTIMAL)
    if hopeful.gangs:
        choice, result = _decide_hopeful(problem, hopeful, kinds, engine)
    # Last go back to the numbers that the gangs have in the whole demand.
    return Answer(
        status=result.status,
        placements=tuple(
            sharing.join(asked[number], GangPlacement(number, placement.members))
            for placement in result.placements
            for number in (hopeful_gangs[placement.gang],)
        ),
        hopeless=hopeless,
        tiers=tier_values_of(
            demand, hopeful, kinds, result, problem.parameters.last_tier
        ),
        statistics=_statistics_of(kinds, choice, result.effort),
    )


def _decide_hopeful(
    problem: Problem,
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    engine: str | None,
) -> Decided:
    """Let the engine decide that is named, else as many as the batch needs."""
    if _is_made_rigid(demand, kinds, engine):
        decided = ElasticSearch(
            problem,
            demand,
            lambda rigid, asked: _decide_hopeful(
                rigid, asked, find_node_kinds(rigid, asked.query), engine
            ),
        ).run()
        if engine is not None:
            return decided
        parameters = problem.parameters
        return at_least_constructed(problem, demand, kinds, parameters, decided)
    if engine is not None:
        return _decide(demand, kinds, problem.parameters, engine)
    apart = find_gangs_apart(demand, kinds)
    if apart is not None:
        return _decide_apart(problem, demand, kinds, apart)
    return _decide_together(problem, demand, kinds)


def _decide_apart(
    problem: Problem,
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    apart: frozenset[int],
) -> Decided:
    decided = ApartSearch(problem, demand, kinds, apart, _decide_together).run()
    return at_least_constructed(problem, demand, kinds, problem.parameters, decided)


def _decide_together(
    problem: Problem, demand: Demand, kinds: tuple[NodeKind, ...]
) -> Decided:
    """Decide a batch as a whole, or apart from it what packing cannot place."""
    parameters = problem.parameters
    spanning = frozenset(rules.gang for rules in demand.gang_rules)
    is_in_parts = (
        bool(spanning)
        and len(demand.gangs) > 1
        and can_be_apart(demand)
        and not is_small(demand, kinds)
    )

    def decide(
        demand: Demand, kinds: tuple[NodeKind, ...], last: Tier | None = None
    ) -> Decided:
        last_tier = min(last or Tier.NODES, parameters.last_tier, key=_place_of)
        pursued = structs.replace(parameters, last_tier=last_tier)
        decided = _decide(demand, kinds, pursued, None)
        return at_least_constructed(problem, demand, kinds, pursued, decided)

    if is_in_parts or _has_parts(demand, kinds):
        decided = _pack_alone(problem, demand, is_in_parts=is_in_parts)
        if decided is not None:
            return decided
    if is_in_parts:
        return _decide_apart(problem, demand, kinds, spanning)
    if demand.expected:
        return LeftoverSearch(problem, demand, kinds, decide).run()
    return decide(demand, kinds)


def _place_of(tier: Tier) -> int:
    return tier.place


def _is_made_rigid(
    demand: Demand, kinds: tuple[NodeKind, ...], engine: str | None
) -> bool:
    """True if extra pods are asked for one by one, not all in the direct model.

    That model decides small batches, and all in which pods may need each other.
    """
    if not demand.is_elastic or demand.query.domains or engine == DIRECT:
        return False
    return engine is not None or not is_small(demand, kinds)


def _decide(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    engine: str | None,
) -> Decided:
    """Let the engine decide that is made for such a batch, or the one that is named.

    Raises:
        PatternLimitError: `engine` is the pattern engine and gives up.
    """
    if engine is not None:
        return _decide_by(engine, demand, kinds, parameters)
    choice = choose_engine(demand, kinds)
    packed = _pack_crowd(demand, kinds, parameters, choice)
    if packed is not None and packed.is_final:
        return packed.decided
    if choice.engine != PATTERN:
        return choice, DirectSearch(demand, kinds, parameters).run()
    try:
        result = PatternSearch(demand, kinds, parameters).run()
    except PatternLimitError as error:
        if packed is not None:
            return EngineChoice(PACKING, str(error)), packed.improve()
        return _decide_without_patterns(demand, kinds, parameters, str(error))
    if result.status is Status.OPTIMAL:
        return choice, result
    if demand.query.counted and not is_stopped():
        # Counted coarsely, what rules between pods leave room for is lost.
        choice = EngineChoice(DIRECT, "rules between pods, not proven best")
        return choice, DirectSearch(demand, kinds, parameters).run()
    if packed is not None:
        return choice, better_of(demand, result, packed.decided[1])
    return _close_gap(demand, kinds, parameters, (choice, result))


def _decide_by(
    engine: str, demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters
) -> Decided:
    """Let the engine decide that is named."""
    choice = EngineChoice(engine, "as asked")
    if engine == PACKING:
        return choice, PackingSearch(demand, kinds, parameters).run()
    if engine == PATTERN:
        return choice, PatternSearch(demand, kinds, parameters).run()
    return choice, DirectSearch(demand, kinds, parameters).run()


class _Packed(Struct, frozen=True):
    """A large batch that was packed: the floor of all that follows."""

    search: PackingSearch
    decided: Decided
    is_final: bool = True
    """True if nothing follows: it is proven, or no other engine does better."""
    is_improved: bool = True

    def improve(self) -> EngineResult:
        """Return the answer after packing has done all it can."""
        return self.decided[1] if self.is_improved else self.search.improve()


def _pack_crowd(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    choice: EngineChoice,
) -> _Packed | None:
    """Pack a large batch; None: it is small, or has rules that packing does not know.

    What is constructed is the floor. Where patterns of nodes can be listed, they go on
    from there; else what was constructed is improved, and patterns may close the gap
    that is left where kinds are few.
    """
    is_about_domains = bool(demand.gang_rules) and not demand.query.domains
    if choice.engine != PATTERN and not is_about_domains:
        return None
    if not _is_crowd(demand, kinds) or is_small(demand, kinds):
        return None
    search = _pack(demand, kinds, parameters)
    if search is None:
        return None
    first = search.construct()
    if first.status is Status.OPTIMAL:
        reason = "constructed, and proven by counting"
        return _Packed(search, (EngineChoice(PACKING, reason), first))
    packed = EngineChoice(PACKING, "parts of nodes")
    if choice.engine == PATTERN and search.lists_nodes and not is_stopped():
        return _Packed(search, (packed, first), is_final=False, is_improved=False)
    improved = search.improve()
    is_open = improved.status is not Status.OPTIMAL and not is_stopped()
    is_late = is_open and choice.engine == PATTERN and search.has_few_kinds
    return _Packed(search, (packed, improved), is_final=not is_late)


def _decide_without_patterns(
    demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters, reason: str
) -> Decided:
    """Decide a batch of which patterns are too many, for the `reason`.

    By packing, or over a part of its states, or, if it is small, by the direct model.
    """
    if not is_small(demand, kinds):
        packing = _pack(demand, kinds, parameters)
        if packing is not None:
            return EngineChoice(PACKING, reason), packing.run()
        with suppress(PatternLimitError):
            return TruncatedSearch(demand, kinds, parameters).run(reason)
    return EngineChoice(DIRECT, reason), DirectSearch(demand, kinds, parameters).run()


def _is_crowd(demand: Demand, kinds: tuple[NodeKind, ...]) -> bool:
    """True if a batch has pods for much of the cluster: looking at all nodes pays."""
    nodes = sum(len(kind.nodes) for kind in kinds)
    return sum(demand.pods) * CROWD >= nodes


def _has_parts(demand: Demand, kinds: tuple[NodeKind, ...]) -> bool:
    """True if many pods share cards or partitions: nodes may come to many states."""
    return (
        sum(demand.pods) >= MANY
        and _is_crowd(demand, kinds)
        and any(
            group.traits.draws or group.is_shareable
            for kind in kinds
            for group in kind.shape.groups
        )
    )


def _pack_alone(
    problem: Problem, demand: Demand, *, is_in_parts: bool
) -> Decided | None:
    """Pack a batch whose nodes come to too many states for patterns of nodes.

    What is left over has no value then. None: it is not such a batch.
    """
    plain = Demand(demand.gangs)
    kinds = find_node_kinds(problem, plain.query)
    packing = _pack(plain, kinds, problem.parameters)
    if packing is None or (packing.lists_nodes and not is_in_parts):
        return None
    decided = EngineChoice(PACKING, "parts of nodes"), packing.run()
    if decided[1].status is Status.OPTIMAL or is_in_parts:
        return decided
    return _close_gap(plain, kinds, problem.parameters, decided)


def _pack(
    demand: Demand, kinds: tuple[NodeKind, ...], parameters: Parameters
) -> PackingSearch | None:
    """Prepare to pack a batch; None: it has rules that packing does not know."""
    try:
        return PackingSearch(demand, kinds, parameters)
    except NotPackableError:
        return None


def _close_gap(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    reached: Decided,
) -> Decided:
    """Let the direct model try where patterns left a gap, if the batch is small."""
    if count_pairs(demand, kinds) > SMALL:
        return reached
    work_limit = min(parameters.work_limit, SMALL_WORK)
    limited = structs.replace(parameters, work_limit=work_limit)
    result = DirectSearch(demand, kinds, limited).run()
    if result.status is not Status.OPTIMAL:
        return reached
    reason = "patterns were not proven best, and it is small"
    return EngineChoice(DIRECT, reason), result


def _statistics_of(
    kinds: tuple[NodeKind, ...], choice: EngineChoice, effort: Effort
) -> Statistics:
    groups = {
        (group.mask, group.values) for kind in kinds for group in kind.shape.groups
    }
    return Statistics(
        node_kinds=len(kinds),
        device_kinds=len(groups),
        engine=choice.engine,
        engine_reason=choice.reason,
        patterns=effort.patterns,
        models=effort.models,
        variables=effort.variables,
        constraints=effort.constraints,
        work=effort.work,
    )


def _hopeless_gangs(demand: Demand, kinds: tuple[NodeKind, ...]) -> tuple[int, ...]:
    """Find the gangs that all nodes together cannot hold, by counting.

    What sets cells of gangs and domains of nodes apart is no matter of counting.
    """
    nodes = Counter[NodeShape]()
    for kind in kinds:
        shape = kind.shape
        if shape.domains:
            shape = structs.replace(shape, domains=())
        nodes[shape] += len(kind.nodes)
    alike = [structs.replace(member, cell=None) for member in demand.member_kinds]
    asked: dict[MemberKind, int] = {}
    for gang_kind in demand.gang_kinds:
        for member, pods in gang_kind.members:
            asked[alike[member]] = max(pods, asked.get(alike[member], 0))
    room = {member: _count_room(member, nodes, most) for member, most in asked.items()}
    without_room = {
        gang
        for gang_kind, gangs in demand.gang_kinds.items()
        if any(pods > room[alike[member]] for member, pods in gang_kind.members)
        for gang in gangs
    }
    return tuple(
        sorted(without_room.union(CommonValues(demand, nodes).list_unserved()))
    )


def _count_room(kind: MemberKind, nodes: Mapping[NodeShape, int], most: int) -> int:
    """Bound the pods of a kind that all nodes hold, as far as it is below `most`."""
    room = 0
    for shape, count in nodes.items():
        room += bound_pods(kind, shape) * count
        if room >= most:
            break
    return room
