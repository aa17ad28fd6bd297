"""Solving recorded questions again, in a process of its own: replay, what-if, help."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from contracts.codec import to_builtins
from contracts.ids import GangKey, GangUID, Namespace, NodeName
from moorings.bus_client import Client
from moorings.console.holders import (
    find_freed,
    list_running,
    name_gangs,
    sum_amounts,
)
from moorings.console.model import ConsoleModel
from moorings.console.proposals import (
    make_what_if,
    narrow,
    view_change,
    view_cluster_change,
)
from moorings.console.what_if import WhatIf, change_problem
from moorings.errors import BadInputError, UnknownNameError
from moorings.recorded import SolveEntry, fetch_solve
from moorings.views.inventory import KnownDevices, read_presence
from moorings.views.solves import compare, view_solve
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import DECISION, Decision
from solver.errors import SandboxUnavailableError
from solver.problem.assemble import resolve_gangs
from solver.problem.problem import Parameters, Problem
from solver.record import Recorded
from solver.service.worker import SolveWorker
from solver.timeline.asking import Asker, Asking, ask_next
from solver.timeline.candidates import may_end
from solver.timeline.holdings import read_holding
from solver.timeline.patience import NEVER

if TYPE_CHECKING:
    from moorings.deciding import Judged
    from solver.timeline.changes import ChangeSearch, SmallestChange
    from solver.timeline.cluster_changes import ClusterChangeSearch

MEMORY_BYTES = 4 << 30
GUARD_S = 240.0
"""A solve that takes longer is ended, as by the service."""
HELP_S = 30.0
"""So long changes are tried for one gang."""
MOST_WAITING = 4
"""Questions that wait for their turn; more are refused."""
Row = dict[str, Any]


class Solving:
    """Answers questions about recorded solves, one at a time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._worker = SolveWorker(memory_bytes=MEMORY_BYTES, guard_s=GUARD_S)
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._evaluator = SelectorEvaluator()
        self._judged: Judged | None = None
        self._judging = asyncio.Lock()

    async def show(self, model: ConsoleModel, solve: str) -> Row:
        """Show a recorded solve.

        Raises:
            UnknownNameError: there is none of this id.
            RecordError: a part of it has expired or is damaged.
        """
        entry = _find_entry(model, solve)
        recorded = await fetch_solve(self._client, entry)

        def view() -> Row:
            return view_solve(entry, recorded.problem(), _read_decision(recorded))

        return await asyncio.to_thread(view)

    async def replay(self, model: ConsoleModel, solve: str) -> Row:
        """Solve again what was recorded, and compare bytes.

        Raises:
            BadInputError: too many ask.
            UnknownNameError: there is none of this id.
            SolverError: it cannot be read or solved.
        """
        from solver.replay import compare_replay  # noqa: PLC0415  # OR-Tools is slow to import

        recorded = await fetch_solve(self._client, _find_entry(model, solve))
        problem = await asyncio.to_thread(recorded.problem)
        data = await self._solve_problem(problem)
        result: Row = to_builtins(compare_replay(recorded, data))
        return result

    async def ask(self, model: ConsoleModel, solve: str, what_if: WhatIf) -> Row:
        """Solve a recorded question in another way, and compare the answers.

        Raises:
            BadInputError: the change does not fit the question, or too many ask.
            UnknownNameError: there is none of this id.
            SolverError: it cannot be read or solved.
        """
        recorded = await fetch_solve(self._client, _find_entry(model, solve))
        problem, before = await asyncio.to_thread(_read_recorded, recorded)
        freed = find_freed(model.known, what_if.end)
        used = sum_amounts(model.known, NodeName(what_if.like))
        changed = await asyncio.to_thread(change_problem, problem, what_if, freed, used)
        after = DECISION.decode(await self._solve_problem(changed))
        return compare(before, after)

    async def find_help(self, model: ConsoleModel, namespace: str, uid: str) -> Row:
        """Find the smallest changes that let a gang in, kind by kind.

        Raises:
            BadInputError: too many ask.
            UnknownNameError: no recorded solve has the gang.
            SolverError: it cannot be read or solved.
        """
        key = GangKey(Namespace(namespace), GangUID(uid))
        entry = find_last(model, key)
        recorded = await fetch_solve(self._client, entry)
        problem, decision = await asyncio.to_thread(_read_recorded, recorded)
        (gang,) = [part for part in problem.gangs if part.key == key]
        narrowed = narrow(problem, decision, key)
        search = _make_search(model, narrowed, key)
        tried: list[Row] = []
        names = name_gangs(model.known)
        end_s = asyncio.get_running_loop().time() + HELP_S
        for asking in search.searches():
            for change in await self._answer(asking, end_s):
                what_if = make_what_if(change, gang, narrowed, names)
                tried.append(view_change(change, what_if))
        beside = await self._search_cluster(model, key, problem.parameters)
        for asking in () if beside is None else beside.searches():
            found = await self._answer(asking, end_s)
            tried += [view_cluster_change(change, time.time()) for change in found]
        opened = entry.opened
        return {"solve": opened.solve, "at": opened.opened_at, "tried": tried}

    async def _search_cluster(
        self, model: ConsoleModel, gang: GangKey, parameters: Parameters
    ) -> ClusterChangeSearch | None:
        """Prepare to ask the cluster as it is; None: it cannot be asked about a gang.

        Either the gang waits no more, or no selector can be evaluated here.
        """
        from moorings.deciding import Judged  # noqa: PLC0415  # OR-Tools is slow to import

        known = model.known
        async with self._judging:
            if self._judged is None:
                self._judged = Judged(self._evaluator.evaluate)
            try:
                return await asyncio.to_thread(
                    _make_cluster_search, known, self._judged, gang, parameters
                )
            except SandboxUnavailableError:
                return None

    async def _answer(
        self, asking: Asking[list[SmallestChange]], end_s: float
    ) -> list[SmallestChange]:
        """Answer what a search asks, unless it is late: then it finds nothing."""
        loop = asyncio.get_running_loop()
        decision: Decision | None = None
        while loop.time() < end_s:
            asked = await asyncio.to_thread(ask_next, asking, decision)
            if not isinstance(asked, Problem):
                return asked.value
            decision = DECISION.decode(await self._solve_problem(asked))
        asking.close()
        return []

    async def _solve_problem(self, problem: Problem) -> bytes:
        if self._waiting >= MOST_WAITING:
            raise BadInputError(
                "console", f"{MOST_WAITING} questions are already waiting"
            )
        self._waiting += 1
        try:
            async with self._turn:
                return await self._worker.solve(problem)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End the processes that solve and evaluate."""
        self._worker.stop()
        self._evaluator.close()


def _make_search(model: ConsoleModel, problem: Problem, gang: GangKey) -> ChangeSearch:
    from solver.timeline.changes import ChangeSearch  # noqa: PLC0415  # OR-Tools is slow to import

    snapshot = model.known.snapshot
    running = list_running(model.known)
    holdings = {
        each.record.key: read_holding(snapshot, each.record) for each in running
    }
    waits = snapshot.gangs.get(gang)
    allowed = [e for e in running if waits is not None and may_end(e.record, waits)]
    return ChangeSearch(problem, gang, allowed, holdings, time.time())


def _make_cluster_search(
    known: KnownDevices, judged: Judged, gang: GangKey, parameters: Parameters
) -> ClusterChangeSearch | None:
    """Evaluate the selectors of a gang, and of those for whom devices are kept."""
    from solver.timeline.cluster_changes import ClusterChangeSearch  # noqa: PLC0415  # imports OR-Tools
    from solver.timeline.keeper import Outlook  # noqa: PLC0415  # likewise

    snapshot = read_presence(known)
    waits = snapshot.waiting.get(gang)
    if waits is None:
        return None
    records = {each.key: each for each in snapshot.promised.values()} | {gang: waits}
    parts = resolve_gangs(snapshot, records.values(), parameters.features)
    judged.learn(snapshot, parts)
    asker = Asker(table=judged.table, parameters=parameters)
    look = Outlook(
        snapshot=snapshot,
        now_s=int(time.time()),
        asker_of=lambda record: asker if record.key in records else None,
        patience_s=NEVER,
    )
    return ClusterChangeSearch(look, asker, waits)


def _find_entry(model: ConsoleModel, solve: str) -> SolveEntry:
    entry = model.solves.get(solve)
    if entry is None:
        raise UnknownNameError("solve", solve, list(model.solves)[-3:])
    return entry


def find_last(model: ConsoleModel, gang: GangKey) -> SolveEntry:
    """Find the last answered solve in which a gang was tried, not only promised."""
    for entry in reversed(model.solves.values()):
        is_of = gang in entry.opened.gangs and not entry.opened.is_promise
        if entry.decided is not None and is_of:
            return entry
    raise UnknownNameError(
        "solve", f"of gang {gang}", why="none is recorded any longer"
    )


def _read_recorded(recorded: Recorded) -> tuple[Problem, Decision]:
    problem, decision = recorded.problem(), _read_decision(recorded)
    if decision is None:
        raise BadInputError(recorded.opened.solve, "has no answer yet")
    return problem, decision


def _read_decision(recorded: Recorded) -> Decision | None:
    return DECISION.decode(recorded.decision) if recorded.decision else None
