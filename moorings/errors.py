"""The errors of moorings.

MooringsError
`-- LocalServerError    the local nats-server does not start
"""

from __future__ import annotations


class MooringsError(Exception):
    """Whatever moorings raises."""


class LocalServerError(MooringsError):
    """The local nats-server does not start."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"nats-server: {reason}")
