"""The errors of publisher.

PublisherError
|-- FolderError        a file or directory of the sink that cannot be read or written
|-- DecisionError      a decision that contradicts its gang, or that Kubernetes refuses
`-- ClaimRefusedError  a claim that somebody else holds
"""

from __future__ import annotations

from contracts.ids import GangUID


class PublisherError(Exception):
    """Whatever publisher raises."""


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
