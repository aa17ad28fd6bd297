"""The first solution by feasibility probes, for searches that do not end.

Choice after choice in the search's order: is there any solution that begins so? CP-SAT
answers, over the same model that decides batches, with every device told apart; what
its last solution already shows is not asked again. Only where no error could be met on
the way: those belong to the plain search.
"""

from __future__ import annotations

from msgspec import structs

from contracts.ids import GangUID
from moorings.upstream.constraints import Constraint
from moorings.upstream.world import RequestData, Requests, World
from solver.engines import cpsat
from solver.engines.cpsat import Term
from solver.engines.direct.build import build, fix, require_all_gangs
from solver.engines.direct.variables import Lot, Placements
from solver.errors import FatalError, StepsSpentError
from solver.kinds.demand import Demand
from solver.kinds.nodes import view_of
from solver.problem.attributes import elements_of
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem

WORK = 60.0
"""Deterministic time of all probes of one pod on one node."""
Solution = tuple[list[int], list[list[int]]]
"""By request, over all claims: the alternative, and the devices in order."""


def may_meet_errors(
    world: World, requests: Requests, constraints: list[list[Constraint]]
) -> bool:
    """True if the plain search could abort, which probes could hide."""
    return any(
        _may_fail(
            world,
            request,
            [each for each in constraints[request.claim] if each.concerns(request)],
        )
        for of_claim in requests
        for alternatives in of_claim
        for request in alternatives
    )


def _may_fail(
    world: World, request: RequestData, constraints: list[Constraint]
) -> bool:
    if request.targets is not None and constraints:
        return True
    verdicts, features = world.verdicts_of(request.part), world.features
    if any(isinstance(verdict, str) for verdict in verdicts):
        return True
    try:
        for index in (i for i, verdict in enumerate(verdicts) if verdict):
            world.amounts_of(request, index)
            for constraint in constraints:
                attribute = constraint.attribute_of(request, index)
                if attribute is not None and not elements_of(attribute, features):
                    return True  # lists while they are off: the order matters
    except FatalError:
        return True
    return False


def first_solution(
    problem: Problem, world: World, member: MemberPart
) -> Solution | None:
    """Find the lexicographically first solution; None: there is none.

    Raises:
        StepsSpentError: not within the limit.
    """
    gang = GangPart(
        uid=GangUID(""), name="", members=(structs.replace(member, count=1),)
    )
    demand = Demand((gang,), is_exact=True)
    view = view_of(world.node, demand.query, problem)
    if view is None:
        return None
    placements = build(demand, (view,))
    require_all_gangs(placements)
    if not placements.lots:
        return None
    return _Probing(placements, problem.parameters.seed).run()


class _Probing:
    """Fixes one choice after the other: the first that still leaves a solution."""

    def __init__(self, placements: Placements, seed: int) -> None:
        self._placements = placements
        self._lot: Lot = placements.lots[0]
        self._member = placements.member_of(self._lot)
        self._seed = seed
        self._work = 0.0
        self._last: cpsat.Solved | None = None

    def run(self) -> Solution | None:
        """Make the choices in the search's order; None: there is no solution."""
        if not self._is_feasible():
            return None
        alternatives, devices = [], []
        for request in range(self._member.requests):
            ask = self._fix_alternative(request)
            alternatives.append(self._member.asks[ask].rank)
            devices.append(self._fix_devices(ask))
        return alternatives, devices

    def _fix_alternative(self, request: int) -> int:
        picks = self._lot.picks
        asks = [ask for ask in self._member.alternatives(request) if ask in picks]
        for ask in asks[:-1]:
            if self._fix_if_feasible((picks[ask], 1)):
                return ask
        return asks[-1]

    def _fix_devices(self, ask: int) -> list[int]:
        """Take the earliest devices that still leave a solution."""
        # Every device is a group of its own here: see `Query.is_exact`.
        positions = {
            self._placements.nodes[0].groups[group].positions[0]: term
            for group, term in self._lot.serving(ask)
        }
        alternative = self._member.asks[ask]
        if alternative.all_devices:
            return sorted(positions)
        devices = list[int]()
        for position in sorted(positions):
            if len(devices) == alternative.count:
                break
            if self._fix_if_feasible(positions[position]):
                devices.append(position)
        return devices

    def _fix_if_feasible(self, term: Term) -> bool:
        """Make a choice if a solution remains with it; else rule it out."""
        variable, _ = term
        # What the last solution shows already needs no other.
        is_shown = self._last is not None and self._last.value(variable) == 1
        fix(self._placements, variable, 1)
        if is_shown or self._is_feasible():
            return True
        fix(self._placements, variable, 0)
        return False

    def _is_feasible(self) -> bool:
        outcome = cpsat.solve(
            self._placements.model,
            work_limit=WORK - self._work,
            seed=self._seed,
            feasibility=True,
        )
        self._work += outcome.work
        match outcome:
            case cpsat.Solved():
                self._last = outcome
                return True
            case cpsat.Infeasible():
                return False
            case cpsat.Unknown():
                raise StepsSpentError
