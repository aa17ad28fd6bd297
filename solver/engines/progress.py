"""What was decided of a batch so far, and the cluster as it is then.

Batches of several sorts of gangs are decided in parts: each part on what the others
left, by the engine that is made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from solver.engines.goals import Effort, EngineResult
from solver.engines.taking import take
from solver.placement import GangPlacement
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem


class Progress(Struct, frozen=True):
    """Placements of gangs of a batch, by their numbers in it."""

    problem: Problem
    """Its cluster counts all placements but those that are pending."""
    gangs: tuple[GangPart, ...]
    """Of the batch, by number."""
    placements: tuple[GangPlacement, ...] = ()
    effort: Effort = Effort()
    pending: int = 0
    """Placements at the end that the cluster does not count yet."""

    @property
    def gangs_in(self) -> frozenset[int]:
        """The gangs that have a place."""
        return frozenset(placement.gang for placement in self.placements)

    def add(self, numbers: Sequence[int], result: EngineResult) -> Progress:
        """Add what an engine found for some gangs; it numbers them as they stand."""
        found = tuple(
            GangPlacement(numbers[item.gang], item.members)
            for item in result.placements
        )
        return structs.replace(
            self,
            placements=(*self.placements, *found),
            effort=self.effort.plus(result.effort),
            pending=self.pending + len(found),
        )

    def back_to(self, other: Progress) -> Progress:
        """Return to what was decided otherwise; what was spent since stays spent."""
        return structs.replace(other, effort=self.effort)

    def occupy(self) -> Progress:
        """Count in the cluster what was given, before others are decided on it."""
        if not self.pending:
            return self
        given = self.placements[-self.pending :]
        problem = take(self.problem, ((self.gangs[item.gang], item) for item in given))
        return structs.replace(self, problem=problem, pending=0)
