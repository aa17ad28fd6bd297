"""True if a gang by itself has a place, for explanations: by the direct model.

Nodes of one kind are equal, so as many of each as there are pods are enough. Only so
many gangs are looked at for a batch, and only small ones: what is beyond that is not
known.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import structs

from contracts.ids import GangUID, Namespace
from solver.decision import Status
from solver.engines.direct.search import DirectSearch
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.snapshot.pages import Page
from solver.snapshot.parts import Part, UsePart
from solver.tiers import Tier

MOST_ASKED = 64
"""Gangs that are looked at for one batch."""
MOST_PAIRS = 1_000
"""Pods times nodes of one that is looked at."""
ONE_WORK = 0.1
"""Deterministic time for one."""


class AloneSearch:
    """What is known of single gangs of a batch, each as if it were the only one."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: dict[tuple[str, bool], bool | None] = {}

    def fits(self, gang: GangPart, unheld: bool) -> bool | None:
        """True if a gang has a place; None: that is not known.

        `unheld`: on a fleet of which nobody holds a device.
        """
        unnamed = structs.replace(
            gang, uid=GangUID(""), name="", namespace=Namespace(""), priority=0
        )
        key = (repr(unnamed), unheld)
        if key not in self._known:
            if len(self._known) >= MOST_ASKED:
                return None
            self._known[key] = self._decide(unnamed, unheld=unheld)
        return self._known[key]

    @cached_property
    def _unheld(self) -> Problem:
        return _without_holders(self._problem)

    def _decide(self, gang: GangPart, *, unheld: bool) -> bool | None:
        problem = self._unheld if unheld else self._problem
        demand, pods = Demand((gang,)), gang.pods
        kinds = tuple(
            structs.replace(kind, nodes=kind.nodes[:pods])
            for kind in find_node_kinds(problem, demand.query)
        )
        if pods * sum(len(kind.nodes) for kind in kinds) > MOST_PAIRS:
            return None
        limited = structs.replace(
            problem.parameters, work_limit=ONE_WORK, last_tier=Tier.GANGS
        )
        result = DirectSearch(demand, kinds, limited).run()
        if result.placements:
            return True
        return False if result.status is Status.OPTIMAL else None


def _without_holders(problem: Problem) -> Problem:
    """Ask the same of a fleet of which nobody holds a device."""
    pages = []
    for page in problem.pages:
        parts = [
            Part(structs.replace(part.value, taken=(), shared=()))
            if isinstance(part.value, UsePart)
            else part
            for part in page.parts()
        ]
        pages.append(Page.of(parts))
    return problem.with_pages(tuple(pages))
