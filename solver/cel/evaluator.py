"""The one function that evaluates selectors: what is asked in, a Verdict each out."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from contracts.device import Device
from solver.cache import Cache
from solver.cel.sandbox import KILLED, Sandbox
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, project
from solver.selectors.table import Verdict

KEPT_EXPRESSIONS = 4096
KEPT_LOOKS = 65_536
"""How much is remembered: expressions, and looks of each."""


class SelectorEvaluator:
    """Evaluates in a sandbox, an expression once a look; usable from any thread."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._verdicts: Cache[str, Cache[Projection, Verdict]] = Cache(KEPT_EXPRESSIONS)
        self._lock = Lock()

    @property
    def evaluations(self) -> int:
        """Count the evaluations so far that were not remembered."""
        return self._sandbox.evaluations

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

    def evaluate(self, wanted: Sequence[tuple[str, str, Device]]) -> list[Verdict]:
        """Judge (expression, driver, device) rows; never raises for an expression.

        Rows of one device in a row are fastest.

        Raises:
            SandboxUnavailableError: no selector can be evaluated here.
        """
        with self._lock:
            found: list[Verdict | None] = []
            missing: dict[str, dict[Projection, list[int]]] = {}
            for index, (expression, driver, device) in enumerate(wanted):
                seen = project(footprint_of(expression), driver, device)
                known = self._verdicts.get(expression)
                verdict = None if known is None else known.get(seen)
                if verdict is None:
                    same = missing.setdefault(expression, {}).setdefault(seen, [])
                    same.append(index)
                found.append(verdict)
            for expression, indices in missing.items():
                firsts = [wanted[same[0]][1:] for same in indices.values()]
                verdicts = self._sandbox.evaluate(expression, firsts)
                self._remember(expression, dict(zip(indices, verdicts, strict=True)))
                for same, judged in zip(indices.values(), verdicts, strict=True):
                    for index in same:
                        found[index] = judged
        return [verdict for verdict in found if verdict is not None]

    def _remember(self, expression: str, verdicts: dict[Projection, Verdict]) -> None:
        """Keep what the expression itself is the cause of."""
        known = self._verdicts.get(expression)
        if known is None:
            known = self._verdicts.keep(expression, Cache(KEPT_LOOKS))
        for seen, verdict in verdicts.items():
            if verdict != KILLED:
                known.keep(seen, verdict)

    def close(self) -> None:
        """End the sandbox."""
        with self._lock:
            self._sandbox.close()
