"""Reports of a publisher about pods (subject `report`).

Why pods wait that are not submitted, because their gang is not whole or cannot be read,
and what became of those that run. For people: nothing is decided by it.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID, Namespace
from contracts.messages import Message
from contracts.structs import Count

WAITING = "Waiting"
"""Phase of pods that are not submitted yet, or whose decision cannot be written."""
PHASES_BY_URGENCY: tuple[str, ...] = (
    GangPhase.REJECTED,
    GangPhase.CANCELLED,
    WAITING,
    GangPhase.PENDING,
    GangPhase.DECIDED,
    GangPhase.ALLOCATED,
    GangPhase.RUNNING,
    GangPhase.COMPLETED,
)
"""Of several, the phase that needs attention most is the gang's."""


class PodsReport(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why some pods of a group wait, or what is wrong with them."""

    phase: str
    """`Waiting`, or the `GangPhase` of the gang that they are of."""
    reason: str
    """One word, such as `PodsMissing`."""
    message: str = ""
    pods: Count = 0
    """How many."""
    names: tuple[str, ...] = ()
    """Some of them, by name."""
    gang_uid: GangUID = GangUID("")
    """The gang whose decision this is about; empty: none was decided."""


class GroupMessage(Message, frozen=True, kw_only=True):
    """A message about a group of pods."""

    cluster: ClusterName
    namespace: Namespace
    kind: str
    """`Gang`; `Pod` of a lone pod; by what else pods belong together, such as `Job`.

    `ResourceClaim` of one that is allocated without a pod."""
    name: str
    """Of the gang, or of that pod or claim."""

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster, namespace, kind and name."""
        return (self.cluster, self.namespace, self.kind, self.name)


class GroupReported(GroupMessage, frozen=True, kw_only=True):
    """The current reports of a group, repeated while they hold."""

    since: str
    """RFC 3339: when its reasons became these."""
    reports: tuple[PodsReport, ...] = ()


class ReportWithdrawn(GroupMessage, frozen=True, kw_only=True):
    """The reports no longer hold."""


ReportMessage = GroupReported | ReportWithdrawn
