"""The errors of moorings.

MooringsError
|-- LocalServerError      the local nats-server does not start
|-- LocalStackError       a component of the local stack does not run
|-- UsageError            a command line that has no meaning
|-- BadInputError         a file, document or address that cannot be used
|-- NotStoredError        something that was not stored, because the bus has no room
|-- CannotReadError       something of the bus that cannot be read, and why
|-- BypassedError         a pod that was bound without Moorings
`-- UnknownNameError      nothing of that name, or more than one
"""

from __future__ import annotations

from collections.abc import Sequence

from contracts.names import GATE


class MooringsError(Exception):
    """Base of the errors of moorings."""


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
    """A command line that has no meaning."""


class BadInputError(MooringsError):
    """A file, document or address that cannot be used: which, where in it, and why."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"{source}: {reason}")


class NotStoredError(MooringsError):
    """Something that was not stored, as the bus has no room."""

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what} was not stored: the bus has no room ({reason})")


class CannotReadError(MooringsError):
    """Something of the bus that cannot be read: which stream, and why."""

    def __init__(self, stream: str, reason: str) -> None:
        self.stream = stream
        self.reason = reason
        super().__init__(f"{stream} cannot be read: {reason}")


class BypassedError(MooringsError):
    """A pod that is on a node and was never asked for; `pod` is `namespace/name`."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        super().__init__(
            f"pod {pod} is on a node, and Moorings was not asked for its devices. If "
            "it was created with spec.nodeName, schedulers ignored it and nobody "
            "allocates its claims: create it again without nodeName and with the gate "
            f"{GATE}, and select the node by its label, such as nodeSelector: "
            "{kubernetes.io/hostname: NODE}"
        )


class UnknownNameError(MooringsError):
    """Nothing of that name, or more than one; `near` are similar or matching names.

    `why` says where else it may be.
    """

    def __init__(
        self, what: str, name: str, near: Sequence[str] = (), why: str = ""
    ) -> None:
        self.what = what
        self.name = name
        self.near = tuple(near)
        hint = f"; {why}" if why else ""
        hint += f"; did you mean {', '.join(near)}?" if near else ""
        super().__init__(f"no {what} named {name!r}{hint}")
