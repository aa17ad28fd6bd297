"""AllocationResult, and the reasons where nothing is allocated.

`AllocationResult` has the shape of `resource.k8s.io/v1`. `Reason` is ours: a closed
set of rules by name, each with its facts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from contracts.device import NodeSelector
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.quantity import Quantity
from contracts.structs import Int64, KubernetesStruct

MAX_DEVICES = 32
"""Devices of one claim (DRA: AllocationResultsMaxSize)."""


class ResultToleration(KubernetesStruct, frozen=True, kw_only=True):
    """A copy of a request's toleration in its result."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class DeviceRequestAllocationResult(KubernetesStruct, frozen=True, kw_only=True):
    """One device for one request."""

    request: str
    """`request`, or `request/subrequest` of a prioritized list."""
    driver: DriverName
    pool: PoolName
    device: DeviceName
    admin_access: bool | None = None
    tolerations: tuple[ResultToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] | None = None

    @property
    def device_id(self) -> DeviceID:
        """The device, unique in the cluster."""
        return DeviceID(self.driver, self.pool, self.device)


class DeviceAllocationConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Configuration that drivers get with the devices."""

    source: str
    """`FromClass` or `FromClaim`."""
    requests: tuple[str, ...] = ()
    opaque: Any = None


class DeviceAllocationResult(KubernetesStruct, frozen=True, kw_only=True):
    """The devices of one claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(KubernetesStruct, frozen=True, kw_only=True):
    """The allocation of one claim (`status.allocation`)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    """Absent: usable on every node."""
    allocation_timestamp: str | None = None
    """Whole seconds, UTC; stamped by whoever writes the claim."""

    @property
    def only_node(self) -> NodeName:
        """The one node where it can be used; empty: it is not that simple."""
        selector = self.node_selector
        return NodeName("") if selector is None else selector.only_node


class Rule(StrEnum):
    """Every rule that can say no, by the name that docs and messages use."""

    NO_CANDIDATE = "NoCandidate"
    """Fewer devices on every node pass the request than it asks for."""
    DISABLED = "FeatureDisabled"
    """Enough devices exist, but they need what the cluster or the node cannot do."""
    TAKEN = "DevicesTaken"
    """Enough devices exist, but others hold them."""
    TAINTED = "DevicesTainted"
    """Enough devices are free, but they have taints that are not tolerated."""
    CONSTRAINT = "ConstraintUnsatisfiable"
    """No node's free devices meet the claim's constraints."""
    ALL_DEVICES = "AllDevicesUnavailable"
    """A request for all devices, of which some are unavailable."""
    JOINT = "JointCapacity"
    """Each member fits alone; together they do not."""
    OUTRANKED = "Outranked"
    """It would fit alone, but gangs of higher priority or age need the devices."""
    SELECTOR_ERROR = "SelectorError"
    """A selector does not compile, or fails on a device that it must judge."""
    UNEVALUATED = "SelectorsUnevaluated"
    """Its selectors take long; they are evaluated while others are decided."""
    QUOTA = "QuotaExceeded"
    """Its ClusterQueue would hold more than its quota and what it may borrow."""
    QUEUE_CLOSED = "QueueClosed"
    """Its queue lets nobody in, or does not exist, or has no quota of what it asks for.
    """
    RESOURCE_QUOTA = "ResourceQuotaExceeded"
    """The API server would not create its claims or pods, by a ResourceQuota of its
    namespace; only `moorings plan` says so, of objects that are not there yet."""
    GANG_QUOTA = "GangQuotaExceeded"
    """More gangs of its namespace wait than may be tried; more urgent ones are."""
    QUEUED = "Queued"
    """It was not tried yet: the turns of others came first."""
    RESERVED = "DevicesReserved"
    """Devices are kept for gangs before it, which start while it would still run."""
    CLAIM_SHARED = "ClaimShared"
    """Another gang holds a ResourceClaim that it names, or comes before it."""
    UNKNOWN_CLASS = "UnknownDeviceClass"
    UNKNOWN_TEMPLATE = "UnknownResourceClaimTemplate"
    UNKNOWN_CLAIM = "UnknownResourceClaim"
    NOT_MODELLED = "NotModelled"
    """This version cannot decide it; the field is named."""
    INVALID = "Invalid"
    """The object breaks a rule of the API; field and rule are named."""
    NOT_PROVEN = "NotProven"
    """No answer within the limits."""
    TOO_MANY_DEVICES = "ClaimDeviceLimit"
    """A claim may hold 32 devices."""
    NODE = "NodeUnavailable"
    """Devices fit, but their nodes are away or not ready."""
    NODE_TAINTED = "NodeTainted"
    """Devices fit, but their nodes are cordoned or have taints in the way."""
    NODE_SELECTION = "NodeNotSelected"
    """Devices fit, but not on nodes that name, labels and affinity allow."""
    NODE_FEATURES = "NodeFeatureMissing"
    """Devices fit, but not where the kubelet declares the features that pods need."""
    NODE_RESOURCES = "NodeResourcesInsufficient"
    """Devices fit, but their nodes have too little CPU, memory or the like left."""
    NODE_PORTS = "NodePorts"
    """Devices fit, but other pods have the ports of their nodes."""
    POD_NEAR = "PodAffinity"
    """Devices fit, but not near the pods that it must be near to."""
    POD_APART = "PodAntiAffinity"
    """Devices fit, but only near pods that must be apart from it, or it from them."""
    POD_SPREAD = "TopologySpread"
    """Devices fit, but only where its pods would not be spread evenly enough."""
    GANG_TOPOLOGY = "GangTopology"
    """Pods fit, but not in as few, or as many, domains as their gang asks for."""
    GROWING = "Growing"
    """Its gang is in without it, and has no place for more pods yet."""
    WITHDRAWN = "WrittenElsewhere"
    """The publisher refused or lost the decision: somebody else was faster."""


UNTRIED = frozenset({Rule.QUEUED, Rule.UNEVALUATED})
"""Reasons of gangs that were not tried yet."""


class Reason(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why not: the rule, what it is about, and the facts in words.

    `subject` is a path such as `worker/gpus/gpu` (member/claim/request) or the name of
    an object; `field` the field of that object where one is to blame.
    """

    rule: Rule
    subject: str = ""
    field: str = ""
    message: str = ""
    facts: dict[str, int] = {}
    """Counts behind the message, such as `devices`, `taken`, `asked`."""

    def __str__(self) -> str:
        head = f"{self.rule}: {self.field}" if self.field else str(self.rule)
        place = f" ({self.subject})" if self.subject else ""
        return f"{head}{place}{': ' + self.message if self.message else ''}"
