"""The nodes that a gang avoids, as they are remembered on the bus (subject `avoid`).

kube-scheduler may refuse a pod on the node that it is pinned to. For a while its gang
is then asked for elsewhere, also by a publisher that starts later.
"""

from __future__ import annotations

from contracts.gang import AvoidedNode
from contracts.ids import ClusterName, Namespace
from contracts.messages import Message
from contracts.structs import Count

GRACE_S = 30.0
"""So long kube-scheduler may refuse a pinned pod: it tries again, ten seconds apart."""
AVOID_S = 600.0
"""So long a node is avoided after kube-scheduler has refused it."""


class NodesAvoided(Message, frozen=True, kw_only=True):
    """All nodes that a gang avoids (subject `avoid`); the last message counts."""

    cluster: ClusterName
    namespace: Namespace
    name: str
    """The gang's label or `<api>/<name>`; of lone pods `Pod/<uid of what makes them>`.

    If nothing makes a pod, its own name stands there.
    """
    nodes: tuple[AvoidedNode, ...] = ()
    recreations: Count = 0
    """How often its pods were made anew: they were refused, or devices failed."""
    recreated_at: str = ""
    """When they were last; RFC 3339."""

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster, namespace and name."""
        return (self.cluster, self.namespace, self.name)
