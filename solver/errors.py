"""The errors of the solver.

SolverError
|-- VerdictMissingError   a Problem whose selector table is incomplete
|-- SandboxUnavailableError  no process to evaluate selectors in: an installation
|                            without the CEL engine
|-- ModelInvalidError     CP-SAT refused the model: our bug
|-- JudgedWrongError      the judge refused our own answer: our bug
|-- ExpectedError         an expected kind of pods whose numbers are out of range
`-- RecordError           a recorded solve that cannot be read back
"""

from __future__ import annotations


class SolverError(Exception):
    """Whatever the solver raises."""


class VerdictMissingError(SolverError):
    """The selector table has no row for a device that a selector must judge."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        super().__init__(f"the selector table lacks a verdict on {expression!r}")


class SandboxUnavailableError(SolverError):
    """The process that evaluates selectors ends before it is ready."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(
            f"selectors cannot be evaluated: the sandbox ended with {exit_code} at its "
            "start (is moorings[solver] installed?)"
        )


class ModelInvalidError(SolverError):
    """CP-SAT refused the model that we built."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"CP-SAT refused the model: {reason}")


class JudgedWrongError(SolverError):
    """The judge found an answer of ours to break a rule."""

    def __init__(self, violations: tuple[str, ...]) -> None:
        self.violations = violations
        super().__init__("the judge refused the answer: " + "; ".join(violations))


class ExpectedError(SolverError, ValueError):
    """The numbers of an expected kind are negative or too large."""

    def __init__(self, weight: int, size: int) -> None:
        self.weight = weight
        self.size = size
        super().__init__(f"expected: weight {weight} or size {size} is out of range")


class RecordError(SolverError):
    """A recorded solve that is incomplete or damaged."""

    def __init__(self, solve: str, reason: str) -> None:
        self.solve = solve
        self.reason = reason
        super().__init__(f"solve {solve}: {reason}")
