"""The errors of runtime.

ServiceError
|-- ConfigError           a variable that a service cannot start with
|-- RestartError          what the start relied on does not hold any more
|-- EarlyReturnError      a task returned although nobody had asked it to stop
`-- BusError
    |-- BusUnavailableError   no answer within the retry budget; the outcome is unknown
    |   |-- BusFullError      there is no room for a message; it was not stored
    |   `-- NobodyListensError  nobody is there who would answer
    |-- PublishRefusedError   the server refused a message; nothing was stored
    |-- StreamDiffersError    a stream exists with settings that cannot be changed
    |-- BusRefusedError       any other refusal of the server
    |   `-- NotAllowedError   our user of the bus lacks the right
    |-- MessageError          a stored message that cannot be read
    |-- BlobMissingError      no blob of that digest, or not all of it
    `-- BlobCorruptedError    chunks that do not add up to the digest
"""

from __future__ import annotations

from typing import Literal

RefusalKind = Literal["exists", "stale", "other"]


class ServiceError(Exception):
    """Base of the errors of runtime."""


class ConfigError(ServiceError):
    """A variable that is missing, unknown or of the wrong type; or an argument."""

    def __init__(self, variable: str, reason: str) -> None:
        self.variable = variable
        self.reason = reason
        super().__init__(f"{variable}: {reason}")


class RestartError(ServiceError):
    """Something that was checked at the start has changed: start again."""


class EarlyReturnError(ServiceError):
    """A task returned without being asked to stop."""

    def __init__(self) -> None:
        super().__init__("ended without being asked to stop")


class BusError(ServiceError):
    """Base of the errors of the bus."""


class BusUnavailableError(BusError):
    """No answer within the retry budget.

    What was asked may have been done all the same.
    """

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what}: NATS is not available: {reason}")


class BusFullError(BusUnavailableError):
    """There is no room for a message, now; it was not stored."""

    is_final = False
    """True if retrying does not help."""

    def __str__(self) -> str:
        return f"{self.what}: not stored, the bus has no room: {self.reason}"


class NobodyListensError(BusUnavailableError):
    """The server answers, but nobody is there whom it could ask."""


class PublishRefusedError(BusError):
    """The server refused a message or a batch; nothing of it was stored.

    `kind` is `exists` (the subject is write-once and taken), `stale` (the expected
    last sequence is not the last any more) or `other`.
    """

    def __init__(
        self,
        subject: str,
        kind: RefusalKind,
        reason: str,
        code: int = 0,
        stream: str = "",
    ) -> None:
        self.subject = subject
        self.stream = stream
        self.kind: RefusalKind = kind
        self.reason = reason
        self.code = code
        super().__init__(f"{subject}: refused: {reason}")


class StreamDiffersError(BusError):
    """A stream exists with other settings, and the server does not change them."""

    def __init__(self, stream: str, fields: tuple[str, ...], reason: str) -> None:
        self.stream = stream
        self.fields = fields
        super().__init__(
            f"stream {stream} exists with other settings ({', '.join(fields)}), "
            f"which the server does not change: {reason}"
        )


class BusRefusedError(BusError):
    """The server refused a request."""

    def __init__(self, what: str, reason: str, code: int = 0) -> None:
        self.what = what
        self.reason = reason
        self.code = code
        super().__init__(f"{what}: {reason}")


class NotAllowedError(BusRefusedError):
    """Our user of the bus may not use a subject."""

    def __init__(self, subject: str, user: str) -> None:
        self.user = user
        super().__init__(subject, f"not allowed for user {user!r} of the bus")


class MessageError(BusError):
    """A message whose bytes cannot be unpacked, and its place in its stream."""

    def __init__(self, subject: str, reason: str, sequence: int = 0) -> None:
        self.subject = subject
        self.reason = reason
        self.sequence = sequence
        super().__init__(f"{subject}: {reason}")


class BlobMissingError(BusError):
    """No blob of that digest; it expired or was never written."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256
        super().__init__(f"blob {sha256}: missing (expired, or never written)")


class BlobCorruptedError(BusError):
    """A stored blob does not have its digest."""

    def __init__(self, sha256: str, reason: str) -> None:
        self.sha256 = sha256
        self.reason = reason
        super().__init__(f"blob {sha256}: {reason}")
