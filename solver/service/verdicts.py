"""Verdicts of selectors: ordinary ones at once, slow ones beside the decisions.

Before a batch is decided, what its selectors still have to say is evaluated within a
budget of CPU time: one for each expression, one for the batch. A gang whose selectors
take longer waits with that reason; they are evaluated beside the decisions, where the
namespaces take turns, and the gang is tried again once all is known. An expression that
is too expensive altogether is refused, by the expression, and not paid for again.

What this leaves to chance is when a gang is tried. What a gang is told is in its
Problem: verdicts, or why it is not even tried.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.ids import GangKey, Namespace
from runtime.log import get_logger
from runtime.waits import first_of
from solver.cache import Cache
from solver.cel.evaluator import KEPT_EXPRESSIONS, SelectorEvaluator
from solver.cel.wire import Allowance
from solver.problem.assemble import MissingVerdict, find_missing_verdicts
from solver.problem.attributes import DERIVED
from solver.problem.gangs import GangPart
from solver.selectors.table import SelectorTable, Verdict
from solver.snapshot.snapshot import Snapshot

log = get_logger(__name__)
ORDINARY = Allowance(base_s=0.1, look_s=0.0005)
"""CPU time of one expression before a batch: five times what ordinary ones take."""
BATCH_S = 2.0
"""CPU time of all expressions before a batch."""
TURN_S = 0.2
"""CPU time of a namespace's turn beside the decisions."""
MAX_LOGGED = 200
"""Characters of an expression in the log."""
MOST_NEW = 32
"""Expressions of a namespace that are begun at a time; more wait for those."""


class Verdicts:
    """All verdicts that are known, and what is done about the others."""

    def __init__(self, evaluator: SelectorEvaluator) -> None:
        self._evaluator = evaluator
        self.table = SelectorTable()
        self._known: Cache[str, bool] = Cache(KEPT_EXPRESSIONS)
        """Expressions that were evaluated for all who asked."""
        self._slow: OrderedDict[Namespace, dict[str, list[MissingVerdict]]] = (
            OrderedDict()
        )
        """What is evaluated beside the decisions; the namespace next in turn first."""
        self._late: dict[Namespace, dict[GangKey, frozenset[str]]] = {}
        """Gangs that wait, for these expressions; none: for room to begin."""
        self._wake = asyncio.Event()

    def keep_only(self, table: SelectorTable) -> None:
        """Forget all verdicts but these."""
        self.table = table
        self._known.clear()

    # --- before a batch --------------------------------------------------------------

    async def judge(
        self, snapshot: Snapshot, gangs: Sequence[GangPart]
    ) -> tuple[GangPart, ...]:
        """Evaluate what is missing; refuse, for now, gangs of which more is.

        Raises:
            SandboxUnavailableError: no selector can be evaluated here.
        """
        gangs = tuple(map(self._refuse_expensive, gangs))
        begun = begin = self._choose_begun(gangs)
        slow: set[str] = set()
        left_s = BATCH_S
        while wanted := find_missing_verdicts(snapshot, begun, self.table):
            verdicts, spent_s = await asyncio.to_thread(
                self._evaluator.evaluate_within, wanted, ORDINARY, left_s
            )
            left_s -= spent_s
            slow |= self._note(wanted, verdicts)
            begun = [gang for gang in begun if slow.isdisjoint(expressions_of(gang))]
        for expression in {e for gang in begun for e in expressions_of(gang)}:
            self._known.keep(expression, True)
        # What took longer than it should is left to `run`.
        done = {gang.key for gang in begun}
        may_begin = {gang.key for gang in begin}
        return tuple(
            gang
            if gang.refused or gang.key in done
            else self._leave(snapshot, gang, may_begin=gang.key in may_begin)
            for gang in map(self._refuse_expensive, gangs)
        )

    def _choose_begun(self, gangs: Iterable[GangPart]) -> list[GangPart]:
        """Choose whose selectors are looked at now.

        A namespace with slow ones gets no new ones meanwhile, and some at a time else.
        """
        new_by_namespace: dict[Namespace, set[str]] = {}
        begun = []
        for gang in gangs:
            new = set(expressions_of(gang)) - self._known.keys()
            others = new_by_namespace.setdefault(gang.namespace, set())
            has_room = not others or len(others | new) <= MOST_NEW
            if not gang.refused and (
                not new or (has_room and gang.namespace not in self._slow)
            ):
                others |= new
                begun.append(gang)
        return begun

    def _note(
        self, wanted: Sequence[MissingVerdict], verdicts: Sequence[Verdict | None]
    ) -> set[str]:
        """Keep what was evaluated; return the expressions of which the rest is left."""
        refused = {row[0] for row in wanted if self._evaluator.refusal_of(row[0])}
        judged = [
            (row, verdict)
            for row, verdict in zip(wanted, verdicts, strict=True)
            if verdict is not None and row[0] not in refused
        ]
        self.table = self.table.with_verdicts(
            [row for row, _ in judged], [verdict for _, verdict in judged]
        )
        left = {
            row[0]
            for row, verdict in zip(wanted, verdicts, strict=True)
            if verdict is None
        }
        return left | refused

    def _leave(
        self, snapshot: Snapshot, gang: GangPart, *, may_begin: bool
    ) -> GangPart:
        """Leave a gang's selectors to `run`; the gang as it is: none is missing."""
        awaited: set[str] = set()
        if may_begin:
            missing = find_missing_verdicts(snapshot, [gang], self.table)
            if not missing:
                return gang
            work = self._slow.setdefault(gang.namespace, {})
            for row in missing:
                if not any(row[0] in other for other in self._slow.values()):
                    work[row[0]] = [each for each in missing if each[0] == row[0]]
                awaited.add(row[0])
            if not work:
                del self._slow[gang.namespace]
        self._late.setdefault(gang.namespace, {})[gang.key] = frozenset(awaited)
        self._wake.set()
        message = (
            "its selectors take long to evaluate; other gangs are decided meanwhile"
        )
        reason = Reason(rule=Rule.UNEVALUATED, message=message)
        return structs.replace(gang, refused=(reason,))

    def _refuse_expensive(self, gang: GangPart) -> GangPart:
        """Refuse a gang with a selector that is not evaluated any more."""
        if gang.refused:
            return gang
        for subject, place, expression in _list_expressions(gang):
            refusal = self._evaluator.refusal_of(expression)
            if refusal:
                reason = Reason(
                    rule=Rule.SELECTOR_ERROR,
                    subject=subject,
                    message=f"{place}: {refusal}",
                )
                return structs.replace(gang, refused=(reason,))
        return gang

    # --- beside the decisions --------------------------------------------------------

    async def run(
        self, stop: asyncio.Event, on_judged: Callable[[Iterable[GangKey]], None]
    ) -> None:
        """Evaluate slow selectors, namespace by namespace, until `stop`.

        `on_judged` is told the gangs that are worth trying again.
        """
        while not stop.is_set():
            self._wake.clear()
            ready = self._take_roomless()
            if self._slow:
                ready += await self._take_turn()
            if ready:
                on_judged(ready)
            if not self._slow:
                await first_of(self._wake, stop, within_s=1.0)

    def _take_roomless(self) -> list[GangKey]:
        """Take the gangs for which there is room to begin."""
        ready = []
        for namespace in [name for name in self._late if name not in self._slow]:
            late = self._late[namespace]
            roomless = [gang for gang, awaited in late.items() if not awaited]
            for gang in roomless[:MOST_NEW]:
                del late[gang]
                ready.append(gang)
            if not late:
                del self._late[namespace]
        return ready

    async def _take_turn(self) -> list[GangKey]:
        """Evaluate some of one namespace; return the gangs that waited for it."""
        namespace, work = next(iter(self._slow.items()))
        self._slow.move_to_end(namespace)
        expression, rows = next(iter(work.items()))
        verdicts, _ = await asyncio.to_thread(
            self._evaluator.evaluate_within, rows, Allowance(base_s=TURN_S)
        )
        self._note(rows, verdicts)
        del work[expression]
        left = [
            row for row, verdict in zip(rows, verdicts, strict=True) if verdict is None
        ]
        if left:
            work[expression] = left  # behind the namespace's others
            return []
        if not work:
            del self._slow[namespace]
        self._known.keep(expression, True)
        refusal = self._evaluator.refusal_of(expression)
        log.info(
            "selector.evaluated",
            namespace=namespace,
            expression=expression[:MAX_LOGGED],
            refusal=refusal,
        )
        return self._take_awaiting(expression)

    def _take_awaiting(self, expression: str) -> list[GangKey]:
        """Take the gangs that waited for nothing but this expression."""
        ready = []
        for late in self._late.values():
            for gang, awaited in list(late.items()):
                if expression in awaited:
                    late[gang] = awaited - {expression}
                    if not late[gang]:
                        del late[gang]
                        ready.append(gang)
        return ready


def expressions_of(gang: GangPart) -> Iterator[str]:
    """Go through the selectors of a gang, and its derived attributes."""
    return (expression for _, _, expression in _list_expressions(gang))


def _list_expressions(gang: GangPart) -> Iterator[tuple[str, str, str]]:
    """Go through (subject, place, expression) of a gang."""
    for member in gang.members:
        for claim in member.claims:
            for request in claim.requests:
                for index, part in enumerate(request.alternatives):
                    name = request.result_name(index)
                    subject = f"{member.name}/{claim.name}/{name}"
                    for number, expression in enumerate(part.selectors):
                        yield subject, part.selector_name(number), expression
                    for attribute, expression in part.derived_attributes:
                        place = f"derived attribute {attribute}"
                        yield subject, place, DERIVED + expression
    for pod in gang.standing:
        for held in pod.devices:
            subject = f"{pod.member}/{held.claim}/{held.request}"
            for attribute, expression in held.derived_attributes:
                place = f"derived attribute {attribute}"
                yield subject, place, DERIVED + expression
