"""The errors of the solver: one tree.

SolverError
|-- VerdictMissingError        a Problem whose selector table is incomplete
|-- SandboxUnavailableError    no process to evaluate selectors in: an installation
|                              without the CEL engine
|-- RefusedError               a gang that is not tried, with the Reason
|-- ExpectedError              an expected kind of pods whose numbers are out of range
|-- QuotaError                 a quota that is configured and cannot be read
|-- DeviceError                what drivers or users wrote about devices cannot be read
|   |-- NodeSelectorError      a NodeSelector with a malformed comparison
|   |-- GatherError            the pools of a node: a malformed node selection
|   `-- AmountError            an amount of capacity that cannot be computed
|-- PatternLimitError          the pattern engine gives up: the direct model decides
|   |-- TooManyPlacementsError to place one pod on a node
|   |-- GraphTooLargeError     states of nodes
|   |-- TooManyStepsError      from state to state; counted more coarsely first
|   `-- PriceOverflowError     prices whose sums could leave 64 bits
|-- NotPackableError           rules that packing does not know: another engine decides
|-- UpstreamError              how kube-scheduler's search ends without an answer
|   |-- FatalError             what aborts its attempt for all nodes, or for this one
|   |-- AbortedError           its time is over
|   |-- ProbingWantedError     the plain search takes too long: probes go on
|   `-- StepsSpentError        the search was given up
|-- ModelInvalidError          CP-SAT refused the model: our bug
|-- ResultError                chosen devices that cannot be written down together
|-- JudgedWrongError           the judge refused our own answer: our bug
|-- RecordError                a recorded solve that cannot be read back
|-- WorkerError                a solve without an answer
|   |-- WorkerLostError        the worker process ended or was too slow: try again
|   `-- WorkerFailedError      it refused the Problem or its own answer
`-- UndecidedError             a recorded batch without an answer

Outside stands what a selector's function says of its arguments
(`cel/messages.py:InputError`): the CEL engine turns it into a verdict, and nothing
of ours catches it.
"""

from __future__ import annotations

import signal

from contracts.allocation import Reason
from contracts.ids import SolveID


class SolverError(Exception):
    """Base of all errors of the solver."""


class VerdictMissingError(SolverError):
    """The selector table has no row for a device that a selector must judge."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        super().__init__(f"the selector table lacks a verdict on {expression!r}")


class SandboxUnavailableError(SolverError):
    """The process that evaluates selectors ends before it is ready."""

    def __init__(self, exit_code: int, said: str) -> None:
        self.exit_code = exit_code
        self.said = said
        how = f"ended with {exit_code}"
        hint = "it said nothing (is moorings[solver] installed?)"
        if exit_code < 0:
            how = f"was killed by {signal.Signals(-exit_code).name}"
            hint = "it said nothing (is there enough memory?)"
        if "No module named" in said:
            said = f"{said} (pip install 'moorings[solver]')"
        super().__init__(
            f"selectors cannot be evaluated: the sandbox {how} at its start: "
            f"{said or hint}"
        )


class RefusedError(SolverError):
    """Why a gang is not tried, and whether that can change."""

    def __init__(self, reason: Reason, *, rejected: bool) -> None:
        self.reason = reason
        self.rejected = rejected
        super().__init__(str(reason))


class ExpectedError(SolverError, ValueError):
    """The numbers of an expected kind are negative or too large."""

    def __init__(self, weight: int, size: int) -> None:
        self.weight = weight
        self.size = size
        super().__init__(f"expected: weight {weight} or size {size} is out of range")


class QuotaError(SolverError, ValueError):
    """A line of a quota that cannot be read."""

    def __init__(self, line: str, reason: str) -> None:
        self.line, self.reason = line, reason
        super().__init__(f"quota {line!r}: {reason}")


class DeviceError(SolverError):
    """What drivers or users wrote about devices cannot be read."""


class NodeSelectorError(DeviceError):
    """A NodeSelector that cannot be read."""


class GatherError(DeviceError):
    """Pools cannot be gathered for a node: a slice's node selection is malformed."""


class AmountError(DeviceError):
    """An amount that cannot be computed, or is negative."""


class PatternLimitError(SolverError):
    """A limit of the pattern engine is passed: another model must decide."""


class NotPackableError(SolverError):
    """A batch with rules, or more states, than packing knows."""


class TooManyPlacementsError(PatternLimitError):
    """One pod can be placed in more ways than are looked at."""


class GraphTooLargeError(PatternLimitError):
    """The states are too many."""


class TooManyStepsError(PatternLimitError):
    """So many that they must be counted more coarsely."""


class PriceOverflowError(PatternLimitError):
    """Prices so large that sums could leave 64 bits."""


class UpstreamError(SolverError):
    """How kube-scheduler's search ends without an answer."""


class FatalError(UpstreamError):
    """What would abort kube-scheduler's attempt for all nodes, or (node) for this."""

    def __init__(self, message: str, *, node_only: bool = False) -> None:
        self.node_only = node_only
        super().__init__(message)


class AbortedError(UpstreamError):
    """The time that the caller gives is over."""

    def __init__(self) -> None:
        super().__init__("filter operation aborted: context deadline exceeded")


class ProbingWantedError(UpstreamError):
    """The plain search takes too long, and probes would find the same."""


class StepsSpentError(UpstreamError):
    """The search was given up."""


class ModelInvalidError(SolverError):
    """CP-SAT refused the model that we built."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"CP-SAT refused the model: {reason}")


class ResultError(SolverError):
    """Chosen devices that cannot be written down together."""


class JudgedWrongError(SolverError):
    """An answer of ours breaks a rule, as the judge sees it."""

    def __init__(self, violations: tuple[str, ...]) -> None:
        self.violations = violations
        super().__init__("the judge refused the answer: " + "; ".join(violations))


class RecordError(SolverError):
    """A recorded solve that is incomplete or damaged."""

    def __init__(self, solve: str, reason: str) -> None:
        self.solve = solve
        self.reason = reason
        super().__init__(f"solve {solve}: {reason}")


class WorkerError(SolverError):
    """The worker process gives no answer to a Problem."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class WorkerLostError(WorkerError):
    """The worker ended without an answer: killed, out of memory, or too slow."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, f"the solve was lost: {reason}")


class WorkerFailedError(WorkerError):
    """The worker refused the Problem or its own answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, reason)


class UndecidedError(SolverError):
    """A batch was recorded, and its solve gave no answer."""

    def __init__(self, solve: SolveID, reason: str) -> None:
        self.solve = solve
        self.reason = reason
        super().__init__(f"solve {solve}: {reason}")
