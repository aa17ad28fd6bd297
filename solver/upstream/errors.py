"""How kube-scheduler's search ends without an answer.

SolverError
|-- FatalError       what would abort its attempt for all nodes, or for this one
`-- StepsSpentError  the search was given up
"""

from __future__ import annotations

from solver.errors import SolverError


class FatalError(SolverError):
    """What would abort kube-scheduler's attempt for all nodes, or (node) for this."""

    def __init__(self, message: str, *, node_only: bool = False) -> None:
        self.node_only = node_only
        super().__init__(message)


class StepsSpentError(SolverError):
    """The search was given up."""
