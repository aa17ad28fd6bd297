"""The one function that evaluates selectors: what is asked in, a Verdict each out."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from contracts.device import Device
from solver.cel.sandbox import Sandbox
from solver.problem.selectors import Verdict


class SelectorEvaluator:
    """Evaluates in a sandbox; may be used from any thread, one call at a time."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._lock = Lock()

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

        Rows of one expression are evaluated together. The caller asks once a look:
        see `SelectorTable`.
        """
        by_expression: dict[str, list[int]] = {}
        for index, (expression, _, _) in enumerate(wanted):
            by_expression.setdefault(expression, []).append(index)
        found: dict[int, Verdict] = {}
        with self._lock:
            for expression, indices in by_expression.items():
                devices = [wanted[index][1:] for index in indices]
                verdicts = self._sandbox.evaluate(expression, devices)
                found.update(zip(indices, verdicts, strict=True))
        return [found[index] for index in range(len(wanted))]

    def close(self) -> None:
        """End the sandbox."""
        with self._lock:
            self._sandbox.close()
