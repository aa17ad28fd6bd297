"""Gangs: members that are allocated all or not at all, and the phases of their life.

The one document that goes over NATS, into a file and, as a custom resource, into the
API server (`moorings.dev/v1alpha1`). What Moorings cannot decide yet is kept here all
the same; the solver refuses it by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from contracts.claim import ResourceClaimSpec
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import GangUID, NodeName, object_key
from contracts.meta import ObjectMeta
from contracts.names import API_VERSION
from contracts.pod_terms import HostPort, TopologySpreadConstraint
from contracts.quantity import Quantity
from contracts.structs import Int32, Int64, KubernetesStruct

MAX_MEMBERS = 5000
"""Pods of one gang."""


class MemberClaim(KubernetesStruct, frozen=True, kw_only=True):
    """A claim that each member has: written out, by template, or by name."""

    name: str
    spec: ResourceClaimSpec | None = None
    template_name: str | None = None
    claim_name: str | None = None


class NodeToleration(KubernetesStruct, frozen=True, kw_only=True):
    """A node taint that the pod does not mind."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class MemberNode(KubernetesStruct, frozen=True, kw_only=True):
    """What a member's pods require of their node and of other pods, besides devices."""

    node_name: NodeName = NodeName("")
    """The only node that will do; empty: any."""
    resources: dict[str, Quantity] = {}
    """Requests of a pod; `pods` is how many pods it counts as, 1 by default."""
    node_selector: dict[str, str] = {}
    tolerations: tuple[NodeToleration, ...] = ()
    affinity: dict[str, Any] = {}
    """As in a pod; only what is required decides."""
    labels: dict[str, str] = {}
    """Of the pods, as far as all have them."""
    varying_labels: tuple[str, ...] = ()
    """Keys of labels that its pods do not all have alike; sorted."""
    host_ports: tuple[HostPort, ...] = ()
    """Host ports of each pod."""
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    features: tuple[str, ...] = ()
    """What the node's kubelet must declare (KEP-5328); sorted."""


class Member(KubernetesStruct, frozen=True, kw_only=True):
    """Equal pods of a gang."""

    name: str
    count: Int32 = 1
    min_count: Int32 | None = None
    """The gang is in when so many have a place; absent: all."""
    claims: tuple[MemberClaim, ...] = ()
    node: MemberNode = MemberNode()

    @property
    def least(self) -> int:
        """Count the pods without which the gang is not in."""
        return self.count if self.min_count is None else self.min_count


class GangSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a Gang."""

    priority: Int32 = 0
    """Higher strictly first; of equals the namespaces take turns."""
    weight: Int32 | None = None
    """Its worth among equals of its priority; absent: devices asked for."""
    members: tuple[Member, ...] = ()
    constraints: tuple[GangConstraint, ...] = ()
    topology: tuple[GangTopology, ...] = ()
    recovery: str = "Report"
    """`Report` or `Recreate`."""
    on_device_failure: tuple[str, ...] = ()
    """Reasons for which a device that is not ready has a gang made anew, such as
    `Unhealthy` or `Xid79`; none: Kubernetes has to end one of its pods first."""
    max_recreations: Int32 | None = None
    """After so many, devices that fail or pods that are refused have it made anew no
    more; absent: there is no limit."""
    hold: bool = False
    """Take the devices before the pods exist."""
    duration: str = ""
    """How long it runs at most, such as `2h30m`; empty: nobody knows. An upper bound:
    by it others are promised when they will start."""

    @property
    def least(self) -> int:
        """Count the pods without which it is not in."""
        return sum(member.least for member in self.members)

    @property
    def is_elastic(self) -> bool:
        """True if it may be allocated with fewer pods than it requests."""
        return any(member.least < member.count for member in self.members)


def count_growing(gang: GangSpec, placed: Iterable[str]) -> dict[str, int]:
    """Count the pods of a gang that have no place, by member; where all have: nothing.

    `placed`: the member of each pod that has one.
    """
    counts = Counter(placed)
    growing = {each.name: each.count - counts[each.name] for each in gang.members}
    return {name: count for name, count in growing.items() if count > 0}


class Gang(KubernetesStruct, frozen=True, kw_only=True):
    """Members that are allocated all or not at all."""

    api_version: str = API_VERSION
    kind: str = "Gang"
    metadata: ObjectMeta = ObjectMeta()
    spec: GangSpec = GangSpec()

    @property
    def named_claims(self) -> frozenset[str]:
        """Return the ResourceClaims that it names, by `namespace/name`."""
        return frozenset(
            object_key(self.metadata.namespace, claim.claim_name)
            for member in self.spec.members
            for claim in member.claims
            if claim.claim_name
        )


KUBELET = "kubelet: "
"""Begins the words of a kubelet that let a pod not in."""


class AvoidedNode(KubernetesStruct, frozen=True, kw_only=True):
    """A node that a pod of a gang was pinned to, and on which it could not run."""

    node: NodeName
    state: str = ""
    """Digest of the node as it was then; once it is another one, the node may do."""
    pod: str = ""
    pod_uid: str = ""
    gang: GangUID = GangUID("")
    """The gang that the pod ran for."""
    device: str = ""
    """The device that could not be attached there; empty: the pod was refused."""
    message: str = ""
    """kube-scheduler's own words, after `kubelet: ` kubelet's, or the driver's of the
    device."""
    since: str
    """RFC 3339."""

    def __str__(self) -> str:
        if self.device:
            return (
                f"node {self.node} avoided: device {self.device} could not be attached"
                f" to it for pod {self.pod}: {self.message}"
            )
        words = self.message.removeprefix(KUBELET)
        who = "kube-scheduler" if words == self.message else "kubelet"
        return f"node {self.node} avoided: {who} refused pod {self.pod} there: {words}"


class GangPhase(StrEnum):
    """The phase of a gang's life; the last three are terminal."""

    PENDING = "Pending"
    DECIDED = "Decided"
    """Devices are chosen; the publisher writes them to claims."""
    ALLOCATED = "Allocated"
    """Its claims hold the devices; gates are opening."""
    RUNNING = "Running"
    """Its pods may run; what it holds is what Kubernetes says of pods and claims."""
    COMPLETED = "Completed"
    CANCELLED = "Cancelled"
    REJECTED = "Rejected"
    """The objects themselves are wrong; can never fit as written."""

    @property
    def is_terminal(self) -> bool:
        """True if no other phase can follow."""
        return self in (GangPhase.COMPLETED, GangPhase.CANCELLED, GangPhase.REJECTED)

    @property
    def holds_devices(self) -> bool:
        """True if its decision holds devices."""
        return self in (GangPhase.DECIDED, GangPhase.ALLOCATED)
