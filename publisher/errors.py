"""The errors of publisher; those of the API server are in `runtime.kube.errors`.

PublisherError
|-- FolderError        a file or directory of the sink that cannot be read or written
|-- DecisionError      a decision that contradicts its gang, or that Kubernetes refuses
|-- ClaimRefusedError  a claim that somebody else holds
`-- NotLeadingError    another publisher is the one that may go on
"""

from __future__ import annotations

from contracts.ids import GangUID


class PublisherError(Exception):
    """Whatever publisher raises."""

    retry_after_s: float | None = None
    """How long to wait at least before it is tried again, where that is known."""


class FolderError(PublisherError):
    """A file or directory that cannot be read or written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class DecisionError(PublisherError):
    """A decision that cannot be written as it is, however often it is tried."""

    def __init__(self, gang: GangUID, reason: str) -> None:
        self.gang = gang
        self.reason = reason
        super().__init__(f"decision for gang {gang}: {reason}")


class ClaimRefusedError(PublisherError):
    """Claims of the gang that are not free to be allocated."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        self.reasons = reasons
        super().__init__("; ".join(reasons))


class NotLeadingError(PublisherError):
    """Another publisher is the one that may go on."""

    def __init__(self) -> None:
        super().__init__("another publisher leads")
