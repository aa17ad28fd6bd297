"""The errors of contracts.

ContractsError
|-- DecodeError      bytes or an object that are not what they should be
|-- UnknownKindError an object of a kind or version that Moorings does not read
|-- SubjectError     a name that cannot become a token of a subject
`-- AddressError     a subject that says something else than its topic or message

QuantityError (quantity.py) and FeatureError (features.py) are ValueErrors instead:
msgspec makes its own errors of these.
"""

from __future__ import annotations


class ContractsError(Exception):
    """Base of the errors of contracts."""


class DecodeError(ContractsError):
    """An input that is not of the expected type.

    `what` names the object or message, `field` the path inside it (`$` is the whole),
    `reason` what is wrong there.
    """

    def __init__(self, what: str, field: str, reason: str) -> None:
        self.what = what
        self.field = field
        self.reason = reason
        place = "" if field in ("", "$") else f": {field.removeprefix('$.')}"
        super().__init__(f"{what}{place}: {reason}")


class UnknownKindError(ContractsError):
    """An object of a kind or version that Moorings does not read or write.

    `explained` is the field that is wrong and why, of an object that is meant for us.
    """

    def __init__(
        self,
        api_version: str,
        kind: str,
        name: str = "",
        explained: tuple[str, str] | None = None,
    ) -> None:
        self.api_version = api_version
        self.kind = kind
        self.name = name
        if not api_version or not kind:
            field = "kind" if api_version else "apiVersion"
            explained = field, "required"
        self.explained = explained
        subject = " ".join(part for part in (kind or "object", name) if part)
        reason = f"apiVersion {api_version} of this kind is unknown"
        super().__init__(f"{subject}: {': '.join(explained or (reason,))}")


class SubjectError(ContractsError):
    """A name that cannot become one token of a NATS subject."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name!r} cannot be part of a subject: {reason}")


class AddressError(ContractsError):
    """A subject that is none of its topic, or not the one of its message."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject}: {reason}")
