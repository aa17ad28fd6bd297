"""The one way to evaluate selectors: expressions and devices in, a Verdict each out."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from msgspec import Struct, structs

from contracts.device import Device
from solver.cache import Cache
from solver.cel.refusals import is_too_complex, too_expensive
from solver.cel.sandbox import KILLED, Sandbox
from solver.cel.wire import Allowance, Confinement
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, project
from solver.selectors.table import Verdict

KEPT_EXPRESSIONS = 4096
KEPT_PROJECTIONS = 65_536
"""How much is remembered: expressions, and projections of each."""


EXPENSIVE = Allowance(base_s=2.0, look_s=0.002)
"""CPU time beyond which an expression is refused, on devices of any number; an ordinary
evaluation takes 0.0001 s."""


class Cost(Struct):
    """What an expression has cost so far."""

    spent_s: float = 0.0
    looks: int = 0
    losses: int = 0
    refusal: Verdict | None = None
    """Its verdict on all devices that are left; None: it is evaluated."""


class SelectorEvaluator:
    """Evaluates in a sandbox, once a projection; usable from any thread."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._verdicts: Cache[str, Cache[Projection, Verdict]] = Cache(KEPT_EXPRESSIONS)
        self._costs: Cache[str, Cost] = Cache(KEPT_EXPRESSIONS)
        self._lock = Lock()

    @property
    def evaluations(self) -> int:
        """Count the evaluations so far that were not remembered."""
        return self._sandbox.evaluations

    def wait_ready(self) -> Confinement:
        """Wait for the sandbox, and tell what the kernel takes from it.

        Raises:
            SandboxUnavailableError: no selector can be evaluated here.
        """
        with self._lock:
            return self._sandbox.wait_ready()

    def __enter__(self) -> Self:
        """Start the sandbox ahead of the first call."""
        self._sandbox.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the sandbox."""
        self.close()

    def evaluate(self, rows: Sequence[tuple[str, str, Device]]) -> list[Verdict]:
        """Judge (expression, driver, device) rows; never raises for an expression.

        Rows of one device in a row are fastest.

        Raises:
            SandboxUnavailableError: no selector can be evaluated here.
        """
        while True:
            verdicts, _ = self.evaluate_within(rows, EXPENSIVE)
            judged = [verdict for verdict in verdicts if verdict is not None]
            if len(judged) == len(rows):
                return judged

    def evaluate_within(
        self,
        rows: Sequence[tuple[str, str, Device]],
        allowance: Allowance,
        total_s: float = float("inf"),
    ) -> tuple[list[Verdict | None], float]:
        """Judge rows as far as CPU time allows; return what it took, too.

        `allowance` is for each expression, `total_s` for all; None: not judged yet.
        What is remembered costs nothing, and the expressions with the fewest
        evaluations come first.

        Raises:
            SandboxUnavailableError: no selector can be evaluated here.
        """
        with self._lock:
            verdicts: list[Verdict | None] = []
            # First look up what is remembered; the rest by expression and projection.
            missing: dict[str, dict[Projection, list[int]]] = {}
            for index, (expression, driver, device) in enumerate(rows):
                projection = project(footprint_of(expression), driver, device)
                remembered = self._verdicts.get(expression)
                verdict = None if remembered is None else remembered.get(projection)
                if verdict is None:
                    by_projection = missing.setdefault(expression, {})
                    by_projection.setdefault(projection, []).append(index)
                verdicts.append(verdict)
            # Then evaluate each projection once, for all rows that have it.
            spent_s = 0.0
            for expression, indices in sorted(missing.items(), key=lambda e: len(e[1])):
                firsts = [rows[alike[0]][1:] for alike in indices.values()]
                within = structs.replace(
                    allowance, most_s=min(allowance.most_s, total_s - spent_s)
                )
                if within.most_s <= 0:
                    break
                answers = self._ask(expression, firsts, within)
                spent_s += self._sandbox.spent_s
                self._remember(expression, dict(zip(indices, answers, strict=False)))
                for alike, answer in zip(indices.values(), answers, strict=False):
                    for index in alike:
                        verdicts[index] = answer
        return verdicts, spent_s

    def refusal_of(self, expression: str) -> str:
        """Return why an expression is not evaluated any more; empty: it is."""
        cost = self._costs.get(expression)
        return "" if cost is None or cost.refusal is None else cost.refusal.error

    def _ask(
        self,
        expression: str,
        devices: Sequence[tuple[str, Device]],
        allowance: Allowance,
    ) -> list[Verdict]:
        """Evaluate within the allowance; one that costs too much is refused for all."""
        cost = self._costs.get(expression) or self._costs.keep(expression, Cost())
        answers: list[Verdict] = []
        if cost.refusal is None:
            answers = self._sandbox.evaluate(expression, devices, allowance)
            cost.spent_s += self._sandbox.spent_s
            cost.looks += len(answers)
            if answers and answers[-1] == KILLED:
                return answers + [KILLED] * (len(devices) - len(answers))
            cost.losses += self._sandbox.losses
            gave_up = cost.losses >= self._sandbox.limits.losses
            if gave_up or (answers and is_too_complex(answers[-1])):
                cost.refusal = answers[-1]
            elif not EXPENSIVE.covers(cost.spent_s, cost.looks):
                cost.refusal = too_expensive(cost.spent_s, cost.looks)
        if cost.refusal is not None:
            return answers + [cost.refusal] * (len(devices) - len(answers))
        return answers

    def _remember(self, expression: str, verdicts: dict[Projection, Verdict]) -> None:
        """Keep what the expression itself is the cause of."""
        remembered = self._verdicts.get(expression)
        if remembered is None:
            remembered = self._verdicts.keep(expression, Cache(KEPT_PROJECTIONS))
        for projection, verdict in verdicts.items():
            if verdict != KILLED:
                remembered.keep(projection, verdict)

    def close(self) -> None:
        """End the sandbox."""
        with self._lock:
            self._sandbox.close()
