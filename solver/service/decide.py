"""One batch from choice to published decisions; all that waits on anything is here.

Evaluate what selectors are still asked, record, solve in the worker, publish behind
the fence, close the record. What comes of a batch that fails is for `attempts.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, time

from msgspec import structs

from contracts import topics
from contracts.allocation import Reason, Rule
from contracts.errors import DecodeError
from contracts.features import Features, nearest_release
from contracts.ids import ClusterName, GangKey, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import DecisionMessage, GangPending
from contracts.solves import SolveOpened
from runtime.errors import BlobCorruptedError, BlobMissingError
from runtime.log import get_logger
from runtime.tracing import GangTraces, trace_id_of
from runtime.wire import Outgoing
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import DECISION, Decision, GangDecision
from solver.devices.pool_projections import read_ahead
from solver.errors import (
    RecordError,
    UndecidedError,
    VerdictMissingError,
    WorkerError,
)
from solver.judge.rules import judge
from solver.problem.assemble import (
    assemble,
    find_missing_verdicts,
    resolve_gangs,
)
from solver.problem.expected import PastDemand, list_last
from solver.problem.gangs import GangPart
from solver.problem.problem import Parameters, Problem
from solver.problem.quota.asked import count_held
from solver.problem.quota.quotas import Within, keep_quotas
from solver.queueing.queue_order import QueueOrder
from solver.selectors.table import SelectorTable
from solver.service import metrics
from solver.service.config import SolverConfig
from solver.service.lead import Leadership
from solver.service.ledger import Ledger
from solver.service.messages import address_decision, make_batch_end, make_decision
from solver.service.verdicts import Verdicts
from solver.service.worker import SolveWorker
from solver.snapshot.snapshot import Snapshot
from solver.stages import stage, told_to
from solver.timeline.asking import Asker
from solver.versions import VERSION

log = get_logger(__name__)
MOST_VERDICTS = 100_000
"""Verdicts that are remembered; beyond, those of the last Problem stay."""

Changes = list[tuple[DecisionMessage, int]]
"""What is to be applied to the Snapshot, with its place in its stream."""


class Decider:
    """Decides batches for one service."""

    def __init__(
        self,
        config: SolverConfig,
        ledger: Ledger,
        leadership: Leadership,
        evaluator: SelectorEvaluator,
        worker: SolveWorker,
        *,
        traces: GangTraces,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._leadership = leadership
        self._verdicts = Verdicts(evaluator)
        self._past: PastDemand | None = None
        """What was asked for lately; None: nobody has looked yet."""
        self._worker = worker
        self._traces = traces
        self._release = ""
        """Of the API server, by which the parameters were made."""
        self._parameters = _parameters_of(config, "")

    @property
    def cluster(self) -> ClusterName:
        """The cluster whose gangs are decided."""
        return self._config.cluster

    def resolve(
        self, snapshot: Snapshot, batch: Sequence[GangRecord]
    ) -> tuple[GangPart, ...]:
        """Make gangs ready to be decided, all their references resolved."""
        features = self._follow_release(snapshot).features
        return resolve_gangs(snapshot, batch, features)

    def order(self, snapshot: Snapshot) -> QueueOrder:
        """Begin a batch: whose queue is next, and who may be tried beside whom."""
        features = self._follow_release(snapshot).features
        return QueueOrder(snapshot, features)

    async def decide(
        self,
        snapshot: Snapshot,
        batch: Sequence[GangRecord],
        guard_s: float,
        explain: Callable[[GangRecord], tuple[Reason, ...]],
    ) -> Changes:
        """Decide a batch; return what it means for the snapshot, with sequences.

        The caller applies the changes: they are not read back first. `guard_s` is how
        long the solve may take; `explain` says why a gang waits that no solve knows.

        Raises:
            UndecidedError: the solve gave no answer.
            PublishRefusedError: we do not lead any more; nothing was published.
            BusUnavailableError: the bus is away; try again.
        """
        clock, began_s = metrics.StageClock(), time()
        with told_to(clock):
            problem = await self._problem(snapshot, batch)
            with stage("record"):
                opened = await self._ledger.open(problem, self._leadership.epoch)
            started = perf_counter()
            try:
                data = await self._worker.solve(problem, guard_s)
            except WorkerError as error:
                raise UndecidedError(opened.solve, error.reason) from error
            seconds = perf_counter() - started
            decision = DECISION.decode(data)
            with stage("publish"):
                answers = [
                    _with_reasons(answer, explain(record))
                    for answer, record in zip(decision.gangs, batch, strict=True)
                ]
                changes = await self._publish_answers(
                    batch, problem.gangs, answers, opened.solve, began_s
                )
        await self._ledger.close(opened, decision, data, seconds)
        metrics.observe_stages(clock.seconds)
        metrics.observe_decision(decision)
        _log_decision(opened, decision, seconds)
        return changes

    def make_asker(self, snapshot: Snapshot, record: GangRecord) -> Asker | None:
        """Return who asks about a gang; None: not all of its selectors are known."""
        parameters, table = self._follow_release(snapshot), self._verdicts.table
        gangs = resolve_gangs(snapshot, [record], parameters.features)
        refused = any(gang.refused for gang in gangs)
        if refused or find_missing_verdicts(snapshot, gangs, table):
            return None
        return Asker(table=table, parameters=parameters)

    async def learn(self, snapshot: Snapshot, records: Iterable[GangRecord]) -> None:
        """Evaluate the selectors of gangs, as far as that is done before a batch.

        Raises:
            SandboxUnavailableError: no selector can be evaluated here.
        """
        features = self._follow_release(snapshot).features
        await self._verdicts.judge(snapshot, resolve_gangs(snapshot, records, features))

    async def ask(self, problem: Problem, guard_s: float) -> bytes:
        """Solve what is asked beside the decisions.

        Raises:
            WorkerError: the solve gave no answer.
        """
        return await self._worker.solve(problem, guard_s)

    async def record(self, problem: Problem, decision: Decision, data: bytes) -> None:
        """Record what was asked of a time to come, and answered.

        Raises:
            BusUnavailableError: the bus is away; try again.
        """
        epoch = self._leadership.epoch
        opened = await self._ledger.open(problem, epoch, is_promise=True)
        await self._ledger.close(opened, decision, data, 0.0)

    async def evaluate(
        self, stop: asyncio.Event, on_judged: Callable[[Iterable[GangKey]], None]
    ) -> None:
        """Evaluate slow selectors beside the decisions; see `Verdicts.run`."""
        await self._verdicts.run(stop, on_judged)

    async def warm(self, snapshot: Snapshot) -> None:
        """Read all nodes ahead of the first gang, here and in the worker.

        It is asked nothing at all, of everything: a Problem without gangs.
        """
        read_ahead(snapshot.inventory.pages)
        parameters = self._follow_release(snapshot)
        problem = Problem(snapshot.inventory.pages, (), SelectorTable(), parameters)
        try:
            await self._worker.solve(problem)
        except WorkerError as error:
            log.warning("worker.cold", reason=error.reason)

    async def finish(self, snapshot: Snapshot, opened: SolveOpened) -> Changes:
        """Solve what a former leader recorded, and publish what still holds.

        Raises:
            PublishRefusedError: we do not lead any more; nothing was published.
            BusUnavailableError: the bus is away; try again.
        """
        try:
            recorded = await self._ledger.fetch(opened)
            problem = recorded.problem()
            data = await self._worker.solve(problem)
        except (
            BlobMissingError,
            BlobCorruptedError,
            DecodeError,
            RecordError,
            WorkerError,
        ) as error:
            log.warning("solve.abandoned", solve=opened.solve, reason=str(error))
            return []
        decision = DECISION.decode(data)
        # It still holds if all its gangs wait as they did then, and the judge takes the
        # answer for what is so now.
        records = [snapshot.gangs.get(gang.key) for gang in decision.gangs]
        waiting = [r for r in records if r is not None and r.is_tried]
        changes: Changes = []
        if len(waiting) == len(records):
            now = await self._problem_now(snapshot, waiting, problem)
            if now and now.gangs == problem.gangs and not judge(now, decision):
                changes = await self._publish_answers(
                    waiting, now.gangs, decision.gangs, opened.solve, time()
                )
        await self._ledger.close(opened, decision, data, 0.0)
        log.info("solve.finished", solve=opened.solve, published=len(changes))
        return changes

    async def _problem_now(
        self, snapshot: Snapshot, batch: Sequence[GangRecord], recorded: Problem
    ) -> Problem | None:
        """Ask a recorded question of what is so now; None: it cannot be asked.

        What was expected then is expected still: what is lost is counted by it.
        """
        parameters = self._follow_release(snapshot)
        asked = await self._judge_gangs(snapshot, batch, parameters)
        table = self._verdicts.table.with_table(recorded.selectors)
        gangs, expected, quotas = asked.gangs, recorded.expected, asked.quotas
        try:
            return assemble(snapshot, gangs, table, parameters, expected, quotas=quotas)
        except VerdictMissingError:
            return None

    async def _problem(
        self, snapshot: Snapshot, batch: Sequence[GangRecord]
    ) -> Problem:
        parameters = self._follow_release(snapshot)
        asked = await self._judge_gangs(snapshot, batch, parameters)
        gangs, quotas = asked.gangs, asked.quotas
        with stage("problem"):
            table = self._verdicts.table
            past = self._follow_past(snapshot, parameters.features)
            expected = past.expect(gangs, snapshot.inventory.pages, table)
            problem = assemble(
                snapshot, gangs, table, parameters, expected, quotas=quotas
            )
        if len(self._verdicts.table) > MOST_VERDICTS:
            self._verdicts.keep_only(problem.selectors)
        return problem

    async def _judge_gangs(
        self, snapshot: Snapshot, batch: Sequence[GangRecord], parameters: Parameters
    ) -> Within:
        """Make gangs ready for a Problem: resolved, within quotas, selectors known.

        They count as asked for from now on.
        """
        with stage("problem"):
            gangs = resolve_gangs(snapshot, batch, parameters.features)
            within = keep_quotas(snapshot, gangs)
        with stage("selectors"):
            gangs = await self._verdicts.judge(snapshot, within.gangs)
        with stage("problem"):
            self._follow_past(snapshot, parameters.features).note(gangs)
        return structs.replace(within, gangs=gangs)

    def _follow_past(self, snapshot: Snapshot, features: Features) -> PastDemand:
        """Return what was asked for; at first, by the gangs that are known."""
        if self._past is None:
            self._past = PastDemand()
            last = list_last(snapshot.gangs.values())
            self._past.note(resolve_gangs(snapshot, last, features))
        return self._past

    def _follow_release(self, snapshot: Snapshot) -> Parameters:
        """Return the parameters for the release that the cluster says it is."""
        release = snapshot.release
        if release != self._release:
            self._release = release
            self._parameters = _parameters_of(self._config, release)
            _log_release(self._config.kubernetes_version, release)
        return self._parameters

    async def publish_unproven(
        self, record: GangRecord, solve: SolveID, why: str
    ) -> Changes:
        """Publish that a gang waits, because no solve with it gave an answer.

        Raises:
            PublishRefusedError: we do not lead any more; nothing was published.
            BusUnavailableError: the bus is away; try again.
        """
        cluster, epoch = self._config.cluster, self._leadership.epoch
        answer = GangDecision(
            uid=record.uid,
            namespace=record.namespace,
            name=record.name,
            reasons=(Reason(rule=Rule.NOT_PROVEN, message=why),),
        )
        message = make_decision(
            answer, record, cluster=cluster, solve=solve, epoch=epoch
        )
        if message is None or _is_repeated(message, record):
            return []
        outgoing = Outgoing.of(topics.DECISIONS, message)
        return [(message, await self._leadership.publish([outgoing]))]

    async def _publish_answers(
        self,
        batch: Sequence[GangRecord],
        gangs: Sequence[GangPart],
        answers: Sequence[GangDecision],
        solve: SolveID,
        began_s: float,
    ) -> Changes:
        """Publish one fenced batch and return what it means for the snapshot.

        `began_s` is when the batch was begun, for its traces.
        """
        cluster, epoch = self._config.cluster, self._leadership.epoch
        messages: list[DecisionMessage] = []
        outgoing: list[Outgoing] = []
        # First what is news: of a gang that waits for the same reasons nothing is said.
        for record, gang, answer in zip(batch, gangs, answers, strict=True):
            quota = count_held(gang, answer.members)
            message = make_decision(
                answer, record, cluster=cluster, solve=solve, epoch=epoch, quota=quota
            )
            if message is not None:
                message, addressed = address_decision(message)
                if not _is_repeated(message, record):
                    messages.append(message)
                    outgoing.append(self._trace(message, addressed, began_s))
        if not messages:
            return []
        # Then all of it at once, behind the fence: a solver that was deposed meanwhile
        # publishes nothing. What was stored is applied with the sequences it got.
        keys = tuple(message.key for message in messages)
        end = make_batch_end(cluster, solve, epoch, keys)
        first = await self._leadership.publish([*outgoing, end])
        return [(message, first + index) for index, message in enumerate(messages)]

    def _trace(
        self, message: DecisionMessage, outgoing: Outgoing, began_s: float
    ) -> Outgoing:
        """Let a decision continue its gang's trace, and name it in the log."""
        if not self._traces.is_on:
            return outgoing
        kind = type(message).__name__
        headers = self._traces.record(
            message.key, "decide", began_s, decision=kind, epoch=message.epoch
        )
        log.info(
            "gang.decided",
            namespace=message.namespace,
            uid=message.uid,
            decision=kind,
            trace_id=trace_id_of(headers),
        )
        return structs.replace(outgoing, headers={**outgoing.headers, **headers})


def _with_reasons(answer: GangDecision, more: tuple[Reason, ...]) -> GangDecision:
    """Add to why a gang waits, if it does."""
    if answer.members or answer.rejected or answer.failed:
        return answer
    return structs.replace(answer, reasons=(*answer.reasons, *more))


def _is_repeated(message: DecisionMessage, record: GangRecord) -> bool:
    """True if the gang waits for just that already, or is in as it is."""
    if not isinstance(message, GangPending):
        return False
    if record.wants_growth:
        return True  # the decision with more pods would be too large
    last = record.decision
    return isinstance(last, GangPending) and last.reasons == message.reasons


def _log_decision(opened: SolveOpened, decision: Decision, seconds: float) -> None:
    verdicts = [gang.verdict for gang in decision.gangs]
    log.info(
        "batch.decided",
        solve=opened.solve,
        status=decision.status,
        gangs=len(verdicts),
        allocated=verdicts.count("allocated"),
        pending=verdicts.count("none"),
        errors=verdicts.count("error"),
        node_kinds=decision.statistics.node_kinds,
        engine=decision.statistics.engine,
        patterns=decision.statistics.patterns,
        variables=decision.statistics.variables,
        work=decision.statistics.work,
        solve_ms=round(seconds * 1000, 3),
    )


def _parameters_of(config: SolverConfig, release: str) -> Parameters:
    return Parameters(
        version=VERSION,
        work_limit=config.work_limit,
        features=config.features_of(release),
    )


def _log_release(configured: str, release: str) -> None:
    """Return which release counts; what is configured need not be what is there."""
    if configured and configured.removeprefix("v") != release:
        log.warning("release.differs", configured=configured, cluster=release)
    elif not configured and release and nearest_release(release) != release:
        log.warning("release.unknown", cluster=release, as_if=nearest_release(release))
    else:
        log.info("release.followed", cluster=release)
