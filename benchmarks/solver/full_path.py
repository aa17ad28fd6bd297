"""The full path in one process: from a Snapshot to a judged Decision, each step timed.

Batch, references, selectors (really evaluated, in the sandbox), Problem and its hash,
then the decision. No bus: `benchmarks.bus.decisions` measures that. Garbage is
collected between batches, as in the solver's worker process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from msgspec import Struct

from contracts.lifecycle import GangRecord
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.devices.pool_projections import read_ahead
from solver.problem.assemble import assemble, find_missing_verdicts, resolve_gangs
from solver.problem.expected import PastDemand
from solver.problem.problem import Parameters, Problem
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable
from solver.service.garbage import after_batch, collect_between_batches
from solver.snapshot.snapshot import Snapshot

PARAMETERS = Parameters(version="benchmark")
ALL = BatchLimits(gangs=1_000_000, pods=100_000_000)


class Decided(Struct, frozen=True, kw_only=True):
    """A Decision, and the seconds that it took."""

    problem: Problem
    decision: Decision
    problem_s: float
    """Batch, references, selectors, Problem, hash."""
    solve_s: float
    """The judge included."""
    cpu_s: float
    """Of the processor, all of it; garbage is collected after an answer."""
    solve_cpu_s: float
    """What this process and its copies worked of that."""


def cpu_seconds() -> float:
    """Return what this process has worked, and those that it waited for."""
    return sum(os.times()[:4])


class Decider:
    """Decides all that waits; keeps what selectors said, as the service does."""

    def __init__(
        self,
        evaluator: SelectorEvaluator,
        parameters: Parameters = PARAMETERS,
    ) -> None:
        self._evaluator = evaluator
        self._parameters = parameters
        self._past = PastDemand()
        self._table = SelectorTable()
        collect_between_batches()

    def problem(
        self, snapshot: Snapshot, batch: Iterable[GangRecord] | None = None
    ) -> Problem:
        """Make the Problem of a batch, by default of all that waits, hashed."""
        if batch is None:
            batch = choose_batch(snapshot, ALL)
        gangs = resolve_gangs(snapshot, batch, self._parameters.features)
        while missing := find_missing_verdicts(snapshot, gangs, self._table):
            verdicts = self._evaluator.evaluate(missing)
            self._table = self._table.with_verdicts(missing, verdicts)
        self._past.note(gangs)
        expected = self._past.expect(gangs, snapshot.inventory.pages, self._table)
        problem = assemble(snapshot, gangs, self._table, self._parameters, expected)
        assert problem.hash
        return problem

    def read_ahead(self, snapshot: Snapshot) -> None:
        """Read and hash all nodes, as a service and its worker do when they start."""
        pages = snapshot.inventory.pages
        read_ahead(pages)
        allocate(Problem(pages, (), SelectorTable(), self._parameters))

    def decide(
        self, snapshot: Snapshot, batch: Iterable[GangRecord] | None = None
    ) -> Decided:
        """Decide a batch, by default all that waits."""
        started, cpu_started = time.perf_counter(), cpu_seconds()
        problem = self.problem(snapshot, batch)
        made, worked_before = time.perf_counter(), cpu_seconds()
        decision = allocate(problem)
        ended, worked = time.perf_counter(), cpu_seconds()
        after_batch()
        return Decided(
            problem=problem,
            decision=decision,
            problem_s=made - started,
            solve_s=ended - made,
            cpu_s=worked - cpu_started,
            solve_cpu_s=worked - worked_before,
        )
