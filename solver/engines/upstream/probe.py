"""The first solution by feasibility probes, for searches that do not end.

Choice after choice in the search's order: is there any solution that begins so? CP-SAT
answers, over the same model that decides batches, with every device told apart; what
its last solution already shows is not asked again. Only where no error could be met on
the way: those belong to the plain search.
"""

from __future__ import annotations

from msgspec import structs

from contracts.ids import GangUID
from solver.engines import cpsat
from solver.engines.cpsat import Term
from solver.engines.direct.build import build, fix, require_all_gangs
from solver.engines.direct.variables import Lot, Placements
from solver.engines.upstream.constraints import Constraint
from solver.engines.upstream.world import Ask, World
from solver.errors import FatalError, StepsSpentError
from solver.kinds.demand import Demand
from solver.kinds.nodes import view_of
from solver.problem.attributes import elements
from solver.problem.problem import GangPart, MemberPart, Problem

WORK = 60.0
"""Deterministic time of all probes of one pod on one node."""
Solution = tuple[list[int], list[list[int]]]
"""By request, over all claims: the alternative, and the devices in order."""


def may_meet_errors(
    world: World, asks: list[list[list[Ask]]], constraints: list[list[Constraint]]
) -> bool:
    """Say whether the plain search could abort, so that probes could hide it."""
    return any(
        _may_fail(world, ask, [c for c in constraints[ask.claim] if c.concerns(ask)])
        for claim in asks
        for request in claim
        for ask in request
    )


def _may_fail(world: World, ask: Ask, constraints: list[Constraint]) -> bool:
    if ask.targets is not None and constraints:
        return True
    verdicts, features = world.verdicts(ask.part), world.features
    if any(isinstance(verdict, str) for verdict in verdicts):
        return True
    try:
        for index in (i for i, verdict in enumerate(verdicts) if verdict):
            world.amounts(ask, index)
            for constraint in constraints:
                value = constraint.attribute(ask, index)
                if value is not None and not elements(value, features):
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
    """Fixes one choice after the other."""

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
            a = self._alternative(request)
            alternatives.append(self._member.asks[a].rank)
            devices.append(self._devices(a))
        return alternatives, devices

    def _alternative(self, request: int) -> int:
        asks = [a for a in self._member.alternatives(request) if a in self._lot.picks]
        for a in asks[:-1]:
            if self._holds((self._lot.picks[a], 1)):
                return a
        return asks[-1]

    def _devices(self, a: int) -> list[int]:
        """Take the earliest devices that still leave a solution."""
        positions = {
            self._placements.nodes[0].groups[g].positions[0]: term
            for g, term in self._lot.serving(a)
        }
        if self._member.asks[a].all_devices:
            return sorted(positions)
        wanted, found = self._member.asks[a].count, list[int]()
        for position in sorted(positions):
            if len(found) == wanted:
                break
            if self._holds(positions[position]):
                found.append(position)
        return found

    def _holds(self, term: Term) -> bool:
        """Fix a choice if a solution remains with it; else rule it out."""
        variable, _ = term
        known = self._last is not None and self._last.value(variable) == 1
        fix(self._placements, variable, 1)
        if known or self._is_feasible():
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
