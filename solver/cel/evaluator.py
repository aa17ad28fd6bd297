"""The one function that evaluates selectors: what is asked in, a Verdict each out."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from contracts.device import Device
from solver.cel.sandbox import KILLED, Sandbox
from solver.problem.reads import reads
from solver.problem.selectors import Look, Verdict, look

KEPT = 200_000
"""Verdicts that are remembered."""


class SelectorEvaluator:
    """Evaluates in a sandbox, an expression once a look; usable from any thread."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._known: dict[tuple[str, Look], Verdict] = {}
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
        rows = [
            (expression, look(reads(expression), driver, device))
            for expression, driver, device in wanted
        ]
        with self._lock:
            if len(self._known) > KEPT:
                self._known.clear()
            missing: dict[str, dict[Look, tuple[str, Device]]] = {}
            for row, (_, driver, device) in zip(rows, wanted, strict=True):
                if row not in self._known:
                    expression, seen = row
                    missing.setdefault(expression, {})[seen] = (driver, device)
            for expression, devices in missing.items():
                self._judge(expression, devices)
            found = [self._known[row] for row in rows]
            self._forget(missing)
        return found

    def _judge(self, expression: str, devices: dict[Look, tuple[str, Device]]) -> None:
        verdicts = self._sandbox.evaluate(expression, list(devices.values()))
        for seen, verdict in zip(devices, verdicts, strict=True):
            self._known[expression, seen] = verdict

    def _forget(self, asked: dict[str, dict[Look, tuple[str, Device]]]) -> None:
        """Ask again next time about what was killed through no fault of its own."""
        for expression, devices in asked.items():
            for seen in devices:
                if self._known[expression, seen] == KILLED:
                    del self._known[expression, seen]

    def close(self) -> None:
        """End the sandbox."""
        with self._lock:
            self._sandbox.close()
