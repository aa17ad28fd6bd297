"""The errors of authcallout.

CalloutError
|-- KeyTextError         a text that is no key of the kind it should be
|-- RequestError         what came on the callout's subject is no request of a server
|-- LoginRefusedError    a client that gets no user of the bus, and why
`-- ReviewError          the API server gave no answer about a token
"""

from __future__ import annotations


class CalloutError(Exception):
    """Base of the errors of authcallout."""


class KeyTextError(CalloutError):
    """A text that is no key of NATS of the kind that is wanted."""

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        super().__init__(f"{kind} key of NATS: {reason}")


class RequestError(CalloutError):
    """A message that is not an authorization request of a server for us."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"authorization request: {field}: {reason}")


class LoginRefusedError(CalloutError):
    """A client gets no user of the bus, because of what it presented.

    The same again is refused again, until something changes in Kubernetes.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


class ReviewError(CalloutError):
    """The API server gave no answer; the same may be granted a little later."""

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what}: no answer of the API server: {reason}")
