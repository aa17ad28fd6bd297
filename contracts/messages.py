"""Every event and command on the bus.

One tagged Struct each; the tag is the `type` of the JSON. Events are past tense,
commands imperative. `__post_init__` checks our invariants, also when decoding.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from contracts.allocation import AllocationResult, Reason
from contracts.codec import encode
from contracts.counts import counted
from contracts.device import DeviceTaint, ResourcePool
from contracts.durations import parse_duration
from contracts.gang import MAX_MEMBERS, AvoidedNode, Gang
from contracts.ids import (
    ClaimRef,
    ClusterName,
    DeviceID,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
    SolveID,
)
from contracts.joined import JoinedGang
from contracts.quantity import Quantity
from contracts.structs import Count

MAX_REASON = 500
"""Characters of others' words that a message carries, and a line of a log shows."""
MAX_NODE_DEVICES = 4096
"""Devices that one node announces."""
MAX_NODE_POOLS = 256
"""Pools of them, empty ones too."""
MAX_BYTES = 1 << 20
"""Largest message; texts for people are left out rather than exceed it."""

_UID = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_SHOWN = 40
"""Characters of a uid that is refused."""


class Message(
    Struct, frozen=True, kw_only=True, rename="camel", tag=True, tag_field="type"
):
    """The base of every message."""

    @property
    def address(self) -> tuple[str, ...]:
        """The names of the one subject on which it belongs, the cluster first."""
        raise NotImplementedError


class NodeMessage(Message, frozen=True, kw_only=True):
    """A message about a node."""

    cluster: ClusterName
    node: NodeName

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster and node."""
        return (self.cluster, self.node)


class ObjectMessage(Message, frozen=True, kw_only=True):
    """A message about an object of Kubernetes."""

    cluster: ClusterName
    kind: str
    key: str
    """`name` or `namespace/name`."""

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster, kind and key."""
        return (self.cluster, self.kind, self.key)


class GangMessage(Message, frozen=True, kw_only=True):
    """A message about a gang."""

    cluster: ClusterName
    namespace: Namespace
    uid: GangUID

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster, namespace and uid."""
        return (self.cluster, self.namespace, self.uid)

    @property
    def key(self) -> GangKey:
        """The gang that it is about."""
        return GangKey(self.namespace, self.uid)


class ClusterMessage(Message, frozen=True, kw_only=True):
    """A message about a cluster as a whole."""

    cluster: ClusterName

    @property
    def address(self) -> tuple[str, ...]:
        """The cluster."""
        return (self.cluster,)


# --- from node agents ----------------------------------------------------------


class DevicesAnnounced(NodeMessage, frozen=True, kw_only=True):
    """All pools and devices of a node, whole (subject `inv`)."""

    pools: tuple[ResourcePool, ...] = ()
    labels: dict[str, str] = {}
    """Topology of the node, such as its rack; Kubernetes' Node wins where it exists."""
    resources: dict[str, Quantity] = {}
    """Resources of the node for all pods; Kubernetes' Node wins where it exists."""

    def __post_init__(self) -> None:
        if len(self.pools) > MAX_NODE_POOLS:
            have = counted(len(self.pools), "pool")
            raise ValueError(f"pools: {have}, more than {MAX_NODE_POOLS}")
        keys = [(pool.driver, pool.name) for pool in self.pools]
        if len(set(keys)) != len(keys):
            raise ValueError("pools: two pools of one driver and name")
        devices = sum(len(pool.devices) for pool in self.pools)
        if devices > MAX_NODE_DEVICES:
            have = counted(devices, "device")
            raise ValueError(f"pools: {have}, more than {MAX_NODE_DEVICES}")
        for pool in self.pools:
            if len({device.name for device in pool.devices}) != len(pool.devices):
                raise ValueError(f"pools[{pool.name}].devices: two of one name")


class DeviceHealth(Struct, frozen=True, kw_only=True, rename="camel"):
    """A device that is not healthy; `reason` is the code of its message, if any."""

    device: DeviceID
    verdict: str
    """`Unhealthy` or `Unknown`."""
    taints: tuple[DeviceTaint, ...] = ()
    message: str = ""
    reason: str = ""


class HealthJudged(NodeMessage, frozen=True, kw_only=True):
    """All devices of a node that are not healthy now (subject `health`)."""

    devices: tuple[DeviceHealth, ...] = ()


class NodeSeen(NodeMessage, frozen=True, kw_only=True):
    """A heartbeat (subject `hb`); when it expires the node is away."""

    incarnation: str = ""
    """Changes when the agent restarts."""


# --- from the publisher: what Kubernetes holds ---------------------------------


class ObjectObserved(ObjectMessage, frozen=True, kw_only=True):
    """An object of Kubernetes as it is now (subject `state`)."""

    object: dict[str, Any]


class ObjectGone(ObjectMessage, frozen=True, kw_only=True):
    """An object of Kubernetes that is no more."""


# --- from platforms -------------------------------------------------------------


class PodRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod of Kubernetes."""

    name: str
    uid: str


class Place(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods at one index of a member; none if they are gone."""

    pods: tuple[PodRef, ...]
    claims: tuple[str, ...] = ()
    """Names of ResourceClaims, one for each claim of the member, in its order."""


class SubmitGang(Message, frozen=True, kw_only=True):
    """Please allocate this gang; the stream's acknowledgement is the acceptance."""

    cluster: ClusterName
    uid: GangUID
    gang: Gang
    submitted_at: str = ""
    """RFC 3339, by the submitter's clock; for people, never for deciding."""
    places: dict[str, tuple[Place, ...]] = {}
    """By member, one for each index: the pods that wait already. Not for deciding."""
    avoided: tuple[AvoidedNode, ...] = ()
    """Nodes that the members' affinity leaves out, and why. Not for deciding."""
    joins: JoinedGang | None = None
    """Pods of the gang that run, where its rules hold over these and them."""
    restores: Count = 0
    """How many pods a running gang that lost some has again with these; 0: else.

    Such pods are decided before others of their priority.
    """

    def __post_init__(self) -> None:
        spec = self.gang.spec
        if not self.uid:
            raise ValueError("uid: must not be empty")
        if not _UID.fullmatch(self.uid):
            shown = ascii(self.uid[:_SHOWN])
            raise ValueError(f"uid: {shown}: letters, digits, '-', '_' and '.' only")
        if not self.gang.metadata.name:
            raise ValueError("gang.metadata.name: must not be empty")
        if not spec.members:
            raise ValueError("gang.spec.members: a gang has at least one member")
        if spec.duration:
            try:
                parse_duration(spec.duration)
            except ValueError as error:
                raise ValueError(f"gang.spec.duration: {error}") from error
        for member in spec.members:
            field = f"gang.spec.members[{member.name}]"
            if member.count < 1:
                raise ValueError(f"{field}.count: {member.count} is less than 1")
            if len({claim.name for claim in member.claims}) != len(member.claims):
                raise ValueError(f"{field}.claims: two of one name")
        if sum(member.count for member in spec.members) > MAX_MEMBERS:
            raise ValueError(f"gang.spec.members: more than {MAX_MEMBERS} pods")
        if len({member.name for member in spec.members}) != len(spec.members):
            raise ValueError("gang.spec.members: two members of one name")
        counts = {member.name: member.count for member in spec.members}
        if any(counts.get(name) != len(places) for name, places in self.places.items()):
            raise ValueError("places: not one for each pod of a member")

    @property
    def address(self) -> tuple[str, ...]:
        """Cluster, namespace and uid."""
        return (self.cluster, self.gang.metadata.namespace, self.uid)

    @property
    def key(self) -> GangKey:
        """The gang that it submits."""
        return GangKey(Namespace(self.gang.metadata.namespace), self.uid)


class CancelGang(GangMessage, frozen=True, kw_only=True):
    """The gang is no longer wanted, allocated or not."""

    reason: str = ""
    recreate: bool = False
    """A publisher deletes its pods, so that whoever made them makes others."""


class ReleaseGang(GangMessage, frozen=True, kw_only=True):
    """The gang's work is done."""

    reason: str = ""


# --- from the solver -------------------------------------------------------------


class ClaimAllocated(Struct, frozen=True, kw_only=True, rename="camel"):
    """The allocation of one claim of a member."""

    claim: str
    """The claim's name in the member (not the ResourceClaim's)."""
    ref: ClaimRef
    allocation: AllocationResult


class MemberAllocated(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where one pod of a gang goes, and what it gets."""

    member: str
    index: Count
    node: NodeName
    claims: tuple[ClaimAllocated, ...] = ()


class QuotaHeld(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a gang holds of a ClusterQueue's quotas."""

    cluster_queue: str
    flavors: dict[str, str] = {}
    """The flavor of each resource that counts."""
    amounts: dict[str, Count] = {}
    """By resource: cpu in thousandths, all others in whole units."""


class Preemption(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """For whom a gang must give up its place: whoever made its pods makes others."""

    preemptor: GangKey
    """The gang that waits, and is to have what becomes free."""
    name: str
    """Of that gang."""
    until: str
    """RFC 3339: whose pods were not evicted by then stays."""
    since: str = ""
    """When the gang that must go got its place, RFC 3339."""
    victims: tuple[GangKey, ...] = ()
    """All gangs that must go for that one: all of them, or none."""


class GangAllocated(GangMessage, frozen=True, kw_only=True):
    """A gang is in: `growing` of its pods, by member, have no place (subject `dec`)."""

    name: str
    solve: SolveID
    attempt: Count
    epoch: Count
    members: tuple[MemberAllocated, ...] = ()
    growing: dict[str, Count] = {}
    kept: dict[str, Count] = {}
    """Of one that grew: so many pods of each member had their place before."""
    quota: QuotaHeld | None = None
    """None: no queue of its own counts it."""
    preempted: Preemption | None = None
    """None: it may stay."""


class ExpectedStart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """When a gang that waits starts at the latest: devices are kept for it."""

    time: str = ""
    """RFC 3339; empty: once gangs have ended of which nobody knows when."""
    proven: bool = False
    """True if it can start no earlier, by what is known."""
    because: str = ""
    """What it waits for, and why it was moved if it was."""
    since: str = ""
    """Since when devices are kept for it, RFC 3339."""
    solve: SolveID = SolveID("")
    """The solve that is recorded of it: what is kept."""


class NodesLacking(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Nodes of one shape that would let a gang in at once, or that it needs at least.

    Without `like` no node could hold some of its pods, even with all devices free.
    """

    count: Count
    """With `like` the fewest that are enough; else one a pod."""
    shape: str = ""
    """With `like` what such a node has, else what each of those pods asks for."""
    like: NodeName = NodeName("")
    """A node of that shape; empty: there is none."""
    member: str = ""
    """Without `like`: whose pods these are."""

    def __str__(self) -> str:
        """Write it as people read it."""
        if self.like:
            shape = f" ({self.shape})" if self.shape else ""
            return f"{counted(self.count, 'more node')} like {self.like}{shape}"
        pods = counted(self.count, "node for a pod", "nodes, or fewer, for the pods")
        asks = f", each with {self.shape}" if self.shape else ""
        return f"{pods} of member {self.member}{asks}: no node here could hold one"


class GangPending(GangMessage, frozen=True, kw_only=True):
    """The gang waits, and why; sent only when something of that changes."""

    name: str
    solve: SolveID
    attempt: Count
    epoch: Count
    reasons: tuple[Reason, ...] = ()
    expected: ExpectedStart | None = None
    """None: nothing is kept for it."""
    lacks: tuple[NodesLacking, ...] = ()
    """Nodes that would let it in; empty: nobody knows, or none would."""


class GangRejected(GangMessage, frozen=True, kw_only=True):
    """The gang's objects are wrong; it can never fit as written. Terminal."""

    name: str
    epoch: Count
    reasons: tuple[Reason, ...] = ()


class ReleaseOutcome(StrEnum):
    """How a gang's life ended."""

    COMPLETED = "Completed"
    CANCELLED = "Cancelled"


class GangReleased(GangMessage, frozen=True, kw_only=True):
    """The gang no longer holds devices. Terminal."""

    name: str
    epoch: Count
    outcome: ReleaseOutcome
    command: CancelGang | ReleaseGang | None = None
    """What ended it, for readers from whose stream it has left."""


class BatchSolved(ClusterMessage, frozen=True, kw_only=True):
    """Ends a batch of decisions; consumers act when it has come (subject `solved`)."""

    solve: SolveID
    epoch: Count
    gangs: tuple[GangKey, ...] = ()


# --- from the publisher: what became of decisions ---------------------------------


class PodWritten(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pod that a member of a gang became, and its claims, as they are named."""

    member: str
    index: Count
    pod: str
    claims: dict[str, str] = {}
    """The ResourceClaim of each claim of the member."""


class AllocationWritten(GangMessage, frozen=True, kw_only=True):
    """All claims of the decision are written (subject `conf`)."""

    attempt: Count
    pods: tuple[PodWritten, ...] = ()
    """Empty where there is no cluster, and when they are omitted."""
    pods_omitted: bool = False
    """True if naming all pods would have exceeded `MAX_BYTES`."""

    def naming(self, pods: tuple[PodWritten, ...]) -> AllocationWritten:
        """Name the pods, or say that they are too many."""
        named = structs.replace(self, pods=pods, pods_omitted=False)
        if len(encode(named)) <= MAX_BYTES:
            return named
        return structs.replace(self, pods=(), pods_omitted=True)


class GatesOpened(GangMessage, frozen=True, kw_only=True):
    """All pods of the attempt may be scheduled, and are pinned to their nodes.

    From here on Kubernetes' own objects say what is taken, until pod and claim end.
    """

    attempt: Count
    state: Count
    """The sequence of the STATE stream at which its pods and claims are all in it."""
    pods: Count = 0
    """Of so many pods the gate was opened; others were gone by then, or withdrawn."""


class AllocationRefused(GangMessage, frozen=True, kw_only=True):
    """The decision could not be written and is void; decide again."""

    attempt: Count
    reason: str
    keeps: bool = False
    """Only growth is void: what the gang had before it is written."""


class AllocationLost(GangMessage, frozen=True, kw_only=True):
    """Somebody else cleared or changed the written claims; decide again."""

    attempt: Count
    reason: str


class ClaimsReleased(GangMessage, frozen=True, kw_only=True):
    """The claims of a released gang no longer hold its devices."""


InventoryMessage = DevicesAnnounced
HealthMessage = HealthJudged
HeartbeatMessage = NodeSeen
StateMessage = ObjectObserved | ObjectGone
SubmissionMessage = SubmitGang
CommandMessage = CancelGang | ReleaseGang
DecisionMessage = GangAllocated | GangPending | GangRejected | GangReleased
ConfirmationMessage = (
    AllocationWritten
    | GatesOpened
    | AllocationRefused
    | AllocationLost
    | ClaimsReleased
)
