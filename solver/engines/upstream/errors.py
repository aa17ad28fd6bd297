"""How kube-scheduler's search ends without an answer.

SolverError
|-- FatalError       what would abort its attempt for all nodes, or for this one
|-- AbortedError     its time is over
`-- StepsSpentError  the search was given up
"""

from __future__ import annotations

from solver.errors import SolverError


class FatalError(SolverError):
    """What would abort kube-scheduler's attempt for all nodes, or (node) for this."""

    def __init__(self, message: str, *, node_only: bool = False) -> None:
        self.node_only = node_only
        super().__init__(message)


class AbortedError(SolverError):
    """The time that the caller gives is over."""

    def __init__(self) -> None:
        super().__init__("filter operation aborted: context deadline exceeded")


class StepsSpentError(SolverError):
    """The search was given up."""
