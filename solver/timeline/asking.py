"""Whether a gang fits, asked of any cluster: as it is, as it will be, as it might be.

What asks yields Problems and is sent their Decisions, so the same core runs beside a
worker process, in virtual time and in tests, and never waits itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Generic, TypeVar

from msgspec import Struct, structs

from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from solver.decision import Decision, Status
from solver.problem.assemble import assemble, resolve_gangs
from solver.problem.free_devices import count_free
from solver.problem.gangs import GangPart
from solver.problem.problem import Parameters, Problem
from solver.problem.quota.quotas import keep_quotas
from solver.selectors.table import SelectorTable
from solver.snapshot.snapshot import Snapshot
from solver.tiers import Tier
from solver.timeline.futures import Members

T = TypeVar("T")
Asking = Generator[Problem, Decision, T]
"""Yields Problems, is sent their Decisions, and returns what follows from them."""


class Fit(Struct, frozen=True, kw_only=True):
    """Where a gang has a place, as far as that is known."""

    members: Members
    """Empty: nowhere, or no place was found."""
    proven: bool
    """True if no other answer can be better; of a no, that there is no place."""
    problem: str = ""
    """Hash of the Problem by which that is known; empty: by counting."""

    def __bool__(self) -> bool:
        return bool(self.members)


class Asker(Struct, frozen=True, kw_only=True):
    """Asks whether one gang fits."""

    table: SelectorTable
    """The verdicts of all devices that the gang's selectors reach."""
    parameters: Parameters

    def place(self, snapshot: Snapshot, record: GangRecord) -> Asking[Fit]:
        """Ask where a gang would be placed, by all tiers of the objective.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        return (yield from self._ask(snapshot, record))

    def find(self, snapshot: Snapshot, record: GangRecord) -> Asking[Fit]:
        """Ask for any place of a gang: less work.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        return (yield from self._ask(snapshot, record, Tier.GANGS))

    def question(
        self, snapshot: Snapshot, record: GangRecord, last: Tier | None = None
    ) -> Problem:
        """Make the Problem of a gang alone, up to a tier of the objective.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        return self._make(snapshot, self.resolve(snapshot, record), last)

    def question_together(
        self, snapshot: Snapshot, records: Iterable[GangRecord], last: Tier
    ) -> Problem:
        """Make the Problem of several gangs, up to a tier of the objective.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        gangs = resolve_gangs(snapshot, records, self.parameters.features)
        return self._make(snapshot, gangs, last)

    def limited(self, work: float) -> Asker:
        """Return one whose questions take no more deterministic time."""
        limit = min(work, self.parameters.work_limit)
        parameters = structs.replace(self.parameters, work_limit=limit)
        return structs.replace(self, parameters=parameters)

    def resolve(self, snapshot: Snapshot, record: GangRecord) -> tuple[GangPart, ...]:
        """Make a gang ready to be asked about."""
        return resolve_gangs(snapshot, [record], self.parameters.features)

    def _ask(
        self, snapshot: Snapshot, record: GangRecord, last: Tier | None = None
    ) -> Asking[Fit]:
        gangs = self.resolve(snapshot, record)
        free = count_free(snapshot.inventory.pages)
        if any(free.lacks(gang) for gang in gangs):
            return Fit(members=(), proven=True)
        return read_fit((yield self._make(snapshot, gangs, last)), record.key)

    def _make(
        self, snapshot: Snapshot, gangs: tuple[GangPart, ...], last: Tier | None
    ) -> Problem:
        parameters = self.parameters
        if last is not None:
            parameters = structs.replace(parameters, last_tier=last)
        within = keep_quotas(snapshot, gangs)
        return assemble(
            snapshot, within.gangs, self.table, parameters, quotas=within.quotas
        )


AskerOf = Callable[[GangRecord], Asker | None]
"""Who asks about a gang; None: nothing can be asked about it now."""


def read_fit(decision: Decision, gang: GangKey) -> Fit:
    """Read where a gang has a place."""
    (answer,) = (each for each in decision.gangs if each.key == gang)
    proven = decision.status is Status.OPTIMAL
    return Fit(members=answer.members, proven=proven, problem=decision.problem)


class Found(Struct, Generic[T], frozen=True):
    """What somebody found who asks no more."""

    value: T


def ask_next(asking: Asking[T], answer: Decision | None) -> Problem | Found[T]:
    """Return the next question, or what was found; `answer`: None for the first."""
    try:
        return next(asking) if answer is None else asking.send(answer)
    except StopIteration as end:
        return Found(end.value)


def answer_all(asking: Asking[T], decide: Callable[[Problem], Decision]) -> T:
    """Answer whatever is asked, one question after the other."""
    asked = ask_next(asking, None)
    while isinstance(asked, Problem):
        asked = ask_next(asking, decide(asked))
    return asked.value
