"""The errors of moorings.

MooringsError
|-- LocalServerError    the local nats-server does not start
|-- LocalStackError     a component of the local stack does not run
|-- UsageError          what was asked cannot be meant
|-- InputError          a file or document that cannot be used
`-- NotFoundError       nothing of that name, or more than one
"""

from __future__ import annotations

from collections.abc import Sequence


class MooringsError(Exception):
    """Whatever moorings raises."""


class LocalServerError(MooringsError):
    """The local nats-server does not start."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"nats-server: {reason}")


class LocalStackError(MooringsError):
    """A component of the local stack does not start, or ends again and again."""

    def __init__(self, component: str, reason: str) -> None:
        self.component = component
        self.reason = reason
        super().__init__(f"{component}: {reason}")


class UsageError(MooringsError):
    """What was asked cannot be meant."""


class InputError(MooringsError):
    """A file or document that cannot be used: which, where in it, and why."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"{source}: {reason}")


class NotFoundError(MooringsError):
    """Nothing of that name, or more than one; `known` are near or matching names.

    `why` says where else it may be.
    """

    def __init__(
        self, what: str, name: str, known: Sequence[str] = (), why: str = ""
    ) -> None:
        self.what = what
        self.name = name
        self.known = tuple(known)
        hint = f"; did you mean {', '.join(known)}?" if known else ""
        hint += f"; {why}" if why else ""
        super().__init__(f"no {what} named {name!r}{hint}")
