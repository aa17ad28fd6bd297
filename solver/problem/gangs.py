"""A gang to be decided, as a Problem holds it: all its references resolved.

A gang has members (equal pods), a member has claims, a claim has requests, a request
has alternatives. These are recorded; what follows from the Problem is left out of the
record.
"""

from __future__ import annotations

from msgspec import Struct, structs

from contracts.allocation import Reason
from contracts.claim import DeviceConfiguration, DeviceConstraint, DeviceToleration
from contracts.device import NodeSelector
from contracts.gang import NodeToleration
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import (
    DeviceClassName,
    FullyQualifiedName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
)
from contracts.pods.pod_rules import PodRules
from contracts.quantity import Quantity
from solver.problem.affinity.rules import ResolvedRules
from solver.problem.growth.standing import StandingPart, StandingRules


class SubrequestPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One way to serve a request, its class looked up and its defaults filled in."""

    name: str = ""
    """Name of the subrequest; empty where a request has no alternatives."""
    device_class: DeviceClassName = DeviceClassName("")
    selectors: tuple[str, ...] = ()
    """Those of the class, then those of the request."""
    class_selectors: int = 0
    """How many of them are the class's."""
    all_devices: bool = False
    count: int = 1
    """Devices asked for; without meaning when all are."""
    tolerations: tuple[DeviceToleration, ...] = ()
    admin_access: bool = False
    capacity: dict[str, Quantity] = {}
    """What each device must have of a capacity, and a share consumes of it."""
    derived_attributes: tuple[tuple[FullyQualifiedName, str], ...] = ()
    """(attribute, expression): values that only constraints see (KEP-6080)."""
    fault: str = ""
    """Why kube-scheduler's allocator cannot even look for devices; in its words."""
    values: tuple[tuple[FullyQualifiedName, tuple[str, object]], ...] = ()
    """(attribute, element): what its devices must have published, and nothing else of
    that name; never recorded, since an engine chooses it."""

    def selector_name(self, index: int) -> str:
        """Name a selector by its place in the class or in the request."""
        own = index - self.class_selectors
        if own < 0:
            return f"class {self.device_class}: selector #{index}"
        return f"selector #{own}"


class RequestPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One request of a claim: the first of some alternatives that can be had."""

    name: str
    alternatives: tuple[SubrequestPart, ...] = (SubrequestPart(),)
    """At least one, best first."""
    fault: str = ""
    """As that of a subrequest, for the request as a whole."""

    def result_name(self, alternative: int) -> str:
        """Name the chosen alternative as results do: `request/subrequest`."""
        own = self.alternatives[alternative].name
        return f"{self.name}/{own}" if own else self.name


class ClaimPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One claim that each pod of a member has."""

    name: str
    """As the member names it."""
    claim_name: str = ""
    """Name of the ResourceClaim, when it exists already; else it is made up."""
    claim_uid: str = ""
    requests: tuple[RequestPart, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    fault: str = ""
    """As that of a subrequest, for the constraints."""

    @property
    def asked(self) -> int:
        """Count the devices that its first choices ask for, those of `All` as one."""
        first = (request.alternatives[:1] for request in self.requests)
        return sum(1 if s.all_devices else s.count for each in first for s in each)


class MemberPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Equal pods of a gang."""

    name: str
    count: int = 1
    min_count: int | None = None
    """So many are enough for the gang to be in; None: all."""
    first: int = 0
    """Index of the first of them: those before it have their place already."""
    claims: tuple[ClaimPart, ...] = ()
    node_name: NodeName = NodeName("")
    """The only node that may serve it; empty: any."""
    extended_resources: tuple[str, ...] = ()
    """Those of its resources that claims here ask for; sorted (KEP-5004)."""
    resources: dict[str, int] = {}
    """What each pod asks of its node, in the units of `NodePart.free`; none is 0.
    Those that claims ask for are not in it; `pods` only where it is not 1."""
    node_selector: dict[str, str] = {}
    affinity: NodeSelector | None = None
    """The required node affinity."""
    tolerations: tuple[NodeToleration, ...] = ()
    features: tuple[str, ...] = ()
    """What the node's kubelet must declare; sorted (KEP-5328)."""
    labels: dict[str, str] = {}
    """Labels that all its pods have."""
    varying_labels: tuple[str, ...] = ()
    """Keys of labels that its pods do not all have alike."""
    pod_rules: PodRules = PodRules()
    """What each pod asks of other pods."""
    resolved: ResolvedRules = ResolvedRules()
    """What that comes to; never recorded, since it follows from the Problem."""

    @property
    def least(self) -> int:
        """Count the pods without which the gang is not in."""
        return self.count if self.min_count is None else self.min_count

    @property
    def asked(self) -> int:
        """Count the devices that a pod's first choices ask for, those of `All` as one.

        That is what it counts for in the weight of its gang and among extra pods.
        """
        return sum(claim.asked for claim in self.claims)

    @property
    def worth(self) -> int:
        """Count what one of its pods is worth beyond the least; at least 1."""
        return max(self.asked, 1)


class SeparatedClaim(Struct, frozen=True):
    """A claim that several pods of a gang share, as a member of its own."""

    member: int
    """Index of the member that stands for it."""
    users: tuple[tuple[int, str], ...]
    """Indices of the members whose pods share it, and what each calls it."""


class QueuePart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The ClusterQueue that a gang's pods count for, and how they count."""

    name: str
    flavors: dict[str, str] = {}
    """By resource the flavor whose quota is taken."""
    classes: dict[DeviceClassName, str] = {}
    """By DeviceClass the resource that its devices count as."""
    capacities: dict[DeviceClassName, FullyQualifiedName] = {}
    """By DeviceClass the capacity that is counted instead of devices."""
    counts_pods: bool = False
    """True if `pods` has a quota."""


class GangPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A gang to be decided, all its references resolved."""

    uid: GangUID
    namespace: Namespace = Namespace("")
    name: str
    priority: int = 0
    """What its author gave, and what it has gained by its age."""
    aged: int = 0
    """How much of the priority it has gained by waiting."""
    weight: int = 0
    """Its worth when it is in: devices asked for, unless the gang says otherwise."""
    members: tuple[MemberPart, ...] = ()
    constraints: tuple[GangConstraint, ...] = ()
    """What devices of several claims have in common; each path names something."""
    topology: tuple[GangTopology, ...] = ()
    standing: tuple[StandingPart, ...] = ()
    """Its pods that have their place, where its rules hold over them and the others."""
    standing_rules: StandingRules = StandingRules()
    """What they leave to the others; never recorded, since it follows."""
    separated: tuple[SeparatedClaim, ...] = ()
    """Shared claims as engines see them; never recorded, since it follows."""
    queue: QueuePart | None = None
    """None: nothing limits how much it holds."""
    rejected: bool = False
    """True if `refused` can never change for the gang as written."""
    refused: tuple[Reason, ...] = ()
    """Why it is not even tried; empty when it is."""

    @property
    def key(self) -> GangKey:
        """Its uid with its namespace: uids are unique within one only."""
        return GangKey(self.namespace, self.uid)

    @property
    def pods(self) -> int:
        """Count its pods."""
        return sum(member.count for member in self.members)

    @property
    def is_elastic(self) -> bool:
        """True if it may be in with fewer pods than it asks for."""
        return any(member.least < member.count for member in self.members)

    @property
    def is_in(self) -> bool:
        """True if it has its place already, and is only asked for more pods."""
        return not any(member.least for member in self.members)

    @property
    def core(self) -> GangPart:
        """The gang with only the pods that it needs to be in."""
        if not self.is_elastic:
            return self
        members = (
            structs.replace(member, count=member.least, min_count=None)
            for member in self.members
        )
        return structs.replace(self, members=tuple(members))

    def with_extra(self, extra: int) -> GangPart:
        """Ask for so many pods at most beyond those that it needs, member by member."""
        members = []
        for member in self.members:
            more = min(extra, member.count - member.least)
            extra -= more
            members.append(
                structs.replace(
                    member, count=member.least + more, min_count=member.least
                )
            )
        return structs.replace(self, members=tuple(members))

    @property
    def claim_members(self) -> frozenset[int]:
        """Indices of the members that stand for shared claims, not for pods."""
        return frozenset(claim.member for claim in self.separated)
