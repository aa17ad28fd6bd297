"""The Problem: everything that an answer depends on, frozen, complete and hashed.

It is a list of pages (the cluster), the gangs of the batch in the order of their
urgency, the pods that run and matter to the rules between pods, what is left of their
namespaces' quotas, the kinds of pods that are expected later, the selector table and
the parameters. Two equal Problems have one hash and one answer; nothing is looked up
later, not even the time.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct, structs

from contracts.allocation import Reason
from contracts.claim import DeviceConfiguration, DeviceConstraint, DeviceToleration
from contracts.codec import Codec
from contracts.device import NodeSelector
from contracts.features import Features
from contracts.gang import NodeToleration
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import (
    DeviceClassName,
    DriverName,
    FullyQualifiedName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
)
from contracts.pods.pod_rules import PodRules
from contracts.quantity import Quantity
from solver.errors import ExpectedError
from solver.problem.pod_rules import SettledRules
from solver.selectors.table import SelectorRows, SelectorTable
from solver.snapshot.pages import Page, Pages
from solver.snapshot.running import RunningPod
from solver.tiers import Tier


class SubrequestPart(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One way to serve a request, its class looked up and its defaults filled in."""

    name: str = ""
    """Of the subrequest; empty where a request has no alternatives."""
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
    """In the member."""
    claim_name: str = ""
    """Of the ResourceClaim, when it exists already; else it is made up."""
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
    """Of the affinity to nodes, what is required."""
    tolerations: tuple[NodeToleration, ...] = ()
    labels: dict[str, str] = {}
    """Of its pods, as far as all have them."""
    varying_labels: tuple[str, ...] = ()
    """Keys of labels that its pods do not all have alike."""
    pod_rules: PodRules = PodRules()
    """What each pod asks of other pods."""
    settled: SettledRules = SettledRules()
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


class SeparatedClaim(Struct, frozen=True):
    """A claim that several pods of a gang share, as a member of its own."""

    member: int
    """Index of the member that stands for it."""
    users: tuple[tuple[int, str], ...]
    """Indices of the members whose pods share it, and what each calls it."""


class GangPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A gang to be decided, all its references resolved."""

    uid: GangUID
    namespace: Namespace = Namespace("")
    name: str
    priority: int = 0
    weight: int = 0
    """Its worth when it is in: devices asked for, unless the gang says otherwise."""
    members: tuple[MemberPart, ...] = ()
    constraints: tuple[GangConstraint, ...] = ()
    """What devices of several claims have in common; each path names something."""
    topology: tuple[GangTopology, ...] = ()
    separated: tuple[SeparatedClaim, ...] = ()
    """Shared claims as engines see them; never recorded, since it follows."""
    rejected: bool = False
    """Whether `refused` can never change for the gang as written."""
    refused: tuple[Reason, ...] = ()
    """Why it is not even tried; empty when it is."""

    @property
    def key(self) -> GangKey:
        """By what it is known: a uid is one namespace's alone."""
        return GangKey(self.namespace, self.uid)

    @property
    def pods(self) -> int:
        """Count its pods."""
        return sum(member.count for member in self.members)

    @property
    def is_elastic(self) -> bool:
        """Whether it may be in with fewer pods than it asks for."""
        return any(member.least < member.count for member in self.members)

    @property
    def core(self) -> GangPart:
        """The gang with the pods alone without which it is not in."""
        if not self.is_elastic:
            return self
        members = (
            structs.replace(member, count=member.least, min_count=None)
            for member in self.members
        )
        return structs.replace(self, members=tuple(members))

    @property
    def claim_members(self) -> frozenset[int]:
        """Indices of the members that stand for shared claims, not for pods."""
        return frozenset(claim.member for claim in self.separated)


class NeighbourPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods that run on a node and matter to the rules of a batch."""

    node: NodeName
    pod: RunningPod
    """With the labels alone that some rule of the batch reads."""


class QuotaPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How many devices a namespace may hold, and how many it holds."""

    namespace: Namespace
    driver: DriverName = DriverName("")
    """Whose devices count; empty: those of every driver."""
    limit: int
    used: int = 0
    """Held before the batch; a share of a device counts as one."""


class ExpectedPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """A kind of pod that is likely to come, for which room is worth keeping."""

    member: MemberPart
    """Its count says nothing."""
    weight: int
    """How likely it is beside the others."""
    size: int
    """Thousandths of a device that one pod takes: 1000 is one whole device."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= MAX_WEIGHT or not 0 <= self.size <= MAX_SIZE:
            raise ExpectedError(self.weight, self.size)


def keep_countable(member: MemberPart) -> MemberPart:
    """Leave of an expected member what room for it is counted by.

    Only first choices that ask for a number of devices of their own: what bounds
    nothing (all devices, admin access, none) is left out, and so are constraints that
    devices differ, and rules between pods. So room is an estimate by counting, never a
    promise.
    """
    claims = tuple(map(_keep_countable_claim, member.claims))
    return structs.replace(
        member,
        claims=claims,
        labels={},
        varying_labels=(),
        pod_rules=PodRules(),
        settled=SettledRules(),
    )


def _keep_countable_claim(claim: ClaimPart) -> ClaimPart:
    return structs.replace(
        claim,
        requests=tuple(
            structs.replace(request, alternatives=request.alternatives[:1])
            for request in claim.requests
            if _is_countable(request)
        ),
        constraints=tuple(
            constraint
            for constraint in claim.constraints
            if constraint.match_attribute is not None
        ),
    )


def _is_countable(request: RequestPart) -> bool:
    first = request.alternatives[0]
    return first.count > 0 and not (first.all_devices or first.admin_access)


MAX_EXPECTED = 64
"""Expected kinds of one Problem."""
DEVICE = 1000
"""The thousandths of one device."""
MAX_WEIGHT, MAX_SIZE = 10_000, 1_000_000
"""Of an expected kind; so values stay whole numbers of 64 bits."""


class Parameters(Struct, frozen=True, kw_only=True, rename="camel"):
    """What else an answer depends on."""

    version: str
    """Of the decision procedure; replay compares bytes within one version."""
    work_limit: float = 8.0
    """CP-SAT deterministic time of one solve."""
    seed: int = 1
    last_tier: Tier = Tier.NODES
    """Of the objective, the last one that is pursued and reported."""
    features: Features = Features()


class ProblemRoot(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The Problem with its pages by hash: what is hashed and recorded."""

    pages: tuple[str, ...]
    gangs: tuple[GangPart, ...]
    selectors: tuple[SelectorRows, ...]
    parameters: Parameters
    expected: Annotated[tuple[ExpectedPart, ...], Meta(max_length=MAX_EXPECTED)] = ()
    neighbours: tuple[NeighbourPart, ...] = ()
    quotas: tuple[QuotaPart, ...] = ()


ROOT: Codec[ProblemRoot] = Codec(ProblemRoot, "problem")


class Problem:
    """What is to be decided; see the module."""

    def __init__(
        self,
        pages: Pages | tuple[Page, ...],
        gangs: tuple[GangPart, ...],
        selectors: SelectorTable,
        parameters: Parameters,
        expected: tuple[ExpectedPart, ...] = (),
        *,
        neighbours: tuple[NeighbourPart, ...] = (),
        quotas: tuple[QuotaPart, ...] = (),
    ) -> None:
        self.pages = tuple(pages)
        self.neighbours = neighbours
        self.quotas = quotas
        self.gangs = gangs
        self.selectors = selectors
        self.parameters = parameters
        self.expected = expected[:MAX_EXPECTED]
        """Those listed first; none where what is left over does not matter."""
        if parameters.last_tier.place < Tier.LEFTOVER.place:
            self.expected = ()

    @cached_property
    def root(self) -> ProblemRoot:
        """The Problem with its pages by hash."""
        return ProblemRoot(
            pages=tuple(page.sha for page in self.pages),
            gangs=self.gangs,
            selectors=self.selectors.rows(),
            parameters=self.parameters,
            expected=self.expected,
            neighbours=self.neighbours,
            quotas=self.quotas,
        )

    def with_gangs(self, gangs: tuple[GangPart, ...]) -> Problem:
        """Ask the same about other gangs."""
        return Problem(
            self.pages,
            gangs,
            self.selectors,
            self.parameters,
            self.expected,
            neighbours=self.neighbours,
            quotas=self.quotas,
        )

    def with_pages(self, pages: tuple[Page, ...]) -> Problem:
        """Ask the same of another cluster."""
        return Problem(
            pages,
            self.gangs,
            self.selectors,
            self.parameters,
            self.expected,
            neighbours=self.neighbours,
            quotas=self.quotas,
        )

    @cached_property
    def data(self) -> bytes:
        """Canonical bytes of the root."""
        return ROOT.encode(self.root)

    @cached_property
    def hash(self) -> str:
        """Hash of the Problem, in hex."""
        return sha256(self.data).hexdigest()
