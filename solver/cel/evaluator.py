"""The one way to evaluate selectors: expressions and devices in, a Verdict each out."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from contracts.device import Device
from solver.cache import Cache
from solver.cel.sandbox import KILLED, Sandbox
from solver.cel.wire import Confinement
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, project
from solver.selectors.table import Verdict

KEPT_EXPRESSIONS = 4096
KEPT_PROJECTIONS = 65_536
"""How much is remembered: expressions, and projections of each."""


class SelectorEvaluator:
    """Evaluates in a sandbox, once a projection; usable from any thread."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._verdicts: Cache[str, Cache[Projection, Verdict]] = Cache(KEPT_EXPRESSIONS)
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
            for expression, indices in missing.items():
                firsts = [rows[alike[0]][1:] for alike in indices.values()]
                answers = self._sandbox.evaluate(expression, firsts)
                self._remember(expression, dict(zip(indices, answers, strict=True)))
                for alike, answer in zip(indices.values(), answers, strict=True):
                    for index in alike:
                        verdicts[index] = answer
        return [verdict for verdict in verdicts if verdict is not None]

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
