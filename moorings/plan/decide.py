"""One plan from objects to answer: the same pipeline as the service's, in process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct, structs

from contracts.counts import counted
from contracts.errors import ContractsError
from contracts.features import Features
from moorings.plan.answer import SolvedWork, make_plan
from moorings.plan.disabled import drop_disabled, refuse_disabled_selectors
from moorings.plan.limits import drop_node_needs, refuse_admin_access
from moorings.plan.objects import PlanObject, with_defaults
from moorings.plan.plan import Plan
from moorings.plan.quotas import PlannedQuotas
from moorings.plan.sharing import continue_work
from moorings.plan.work import PlanWork, prepare_work
from moorings.upstream.allocate import allocate_upstream
from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Decision
from solver.errors import SolverError
from solver.problem.assemble import assemble, find_missing_verdicts, resolve_gangs
from solver.problem.expected import PastDemand
from solver.problem.problem import ExpectedPart, Parameters, Problem
from solver.problem.quota.quotas import keep_quotas
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable
from solver.snapshot.snapshot import Snapshot
from solver.versions import VERSION

_ALL = BatchLimits(gangs=1_000_000, pods=1_000_000_000)


class PlanOptions(Struct, frozen=True, kw_only=True):
    """How to plan."""

    node: str | None = None
    order: str = "optimal"
    """`optimal` or `upstream`."""
    features: Features = Features()
    as_stored: bool = False
    """True if the `upstream` order fills in no defaults of the API server."""
    timeout_seconds: float | None = None
    """Of the `upstream` order; the other has limits in work units."""
    change: Callable[[Snapshot], Snapshot] | None = None
    """Changes the cluster that the objects describe, before anything is decided."""


class Planner:
    """Makes plans, with one sandbox and one table of verdicts for all of them."""

    def __init__(
        self,
        evaluator: SelectorEvaluator,
        tell: Callable[[str], None] = lambda _: None,
        limit: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`tell` is told what is done from now on.

        `limit` makes, for each plan, what its searches run in: it may stop them
        (`solver.stopping`). It is entered once for each round.
        """
        self._evaluator = evaluator
        self._tell = tell
        self._limit = limit
        self._table = SelectorTable()
        self._evaluations = 0

    def plan(self, objects: Iterable[PlanObject], options: PlanOptions) -> Plan:
        """Make one plan; what cannot be decided is in the answer."""
        started = time.perf_counter()
        evaluations_before = self._evaluations
        try:
            entries = list(objects)
            answers, solve_seconds = self._decide_objects(entries, options, started)
        except (ContractsError, SolverError, ValueError) as error:
            return Plan(status="Error", error=str(error))
        return make_plan(
            answers,
            evaluations=self._evaluations - evaluations_before,
            seconds=(solve_seconds, time.perf_counter() - started),
        )

    def _decide_objects(
        self, entries: list[PlanObject], options: PlanOptions, started: float
    ) -> tuple[list[SolvedWork], float]:
        """Decide what is submitted now, then what waited for it; with the seconds."""
        answers: list[SolvedWork] = []
        solve_seconds = 0.0
        self._tell(f"reading {counted(len(entries), 'object')}")
        past, limit = PastDemand(), self._limit()
        if options.order == "upstream" and not options.as_stored:
            entries = list(map(with_defaults, entries))  # the other fills them in
        dropped: list[str] = []
        if not options.as_stored:
            entries, dropped = drop_disabled(entries, options.features)
        first = prepare_work(entries, options.node, as_stored=options.as_stored)
        if options.change is not None:
            changed = options.change(first.snapshot)
            first = structs.replace(first, snapshot=changed)
        quotas = PlannedQuotas(
            entries if _is_limited(options) else (), options.features
        )
        notes = (*dropped, *first.notes, *quotas.notes)
        work: PlanWork | None = structs.replace(first, notes=notes)
        while work is not None:
            problem = self._make_problem(work, entries, options, past, quotas)
            pods = sum(gang.pods for gang in problem.gangs)
            gangs = counted(len(problem.gangs), "gang")
            self._tell(f"deciding {gangs} of {counted(pods, 'pod')}")
            solving = time.perf_counter()
            with limit:
                decision = _decide_problem(problem, options, started)
            solve_seconds += time.perf_counter() - solving
            answers.append(SolvedWork(work=work, problem=problem, decision=decision))
            work = continue_work(work, decision)
        return answers, solve_seconds

    def _make_problem(
        self,
        work: PlanWork,
        objects: list[PlanObject],
        options: PlanOptions,
        past: PastDemand,
        quotas: PlannedQuotas,
    ) -> Problem:
        uids = {message.uid for message in work.gangs}
        batch = choose_batch(work.snapshot, _ALL)
        batch = tuple(record for record in batch if record.uid in uids)
        lenient = options.order == "upstream"
        gangs = resolve_gangs(work.snapshot, batch, options.features, lenient=lenient)
        gangs = drop_node_needs(gangs, objects)
        if not lenient:
            gangs = refuse_admin_access(gangs, objects)
        if not options.as_stored:
            gangs = refuse_disabled_selectors(gangs, objects, options.features)
        gangs = quotas.refuse(gangs, work)
        within = keep_quotas(work.snapshot, gangs)
        gangs = within.gangs
        while missing := find_missing_verdicts(work.snapshot, gangs, self._table):
            self._evaluations += len(missing)
            self._tell(f"evaluating {counted(len(missing), 'selector')}")
            verdicts = self._evaluator.evaluate(missing)
            self._table = self._table.with_verdicts(missing, verdicts)
        parameters = Parameters(version=VERSION, features=options.features)
        expected: tuple[ExpectedPart, ...] = ()
        if not lenient:
            past.note(gangs)
            expected = past.expect(gangs, work.snapshot.inventory.pages, self._table)
        return assemble(work.snapshot, gangs, self._table, parameters, expected)


def _is_limited(options: PlanOptions) -> bool:
    """True if quotas limit a plan: kube-scheduler asks for claims that were created."""
    return options.order != "upstream" and options.node is None


def _decide_problem(problem: Problem, options: PlanOptions, started: float) -> Decision:
    if options.order == "upstream":
        limit = options.timeout_seconds
        until = float("inf") if limit is None else started + limit
        return allocate_upstream(problem, lambda: time.perf_counter() > until)
    return allocate(problem)
