"""Nodes, pods, what makes pods and what limits them, as far as an allocator must know.

Excerpts: fields that no decision depends on are left out, so nothing here can be
written back. Knows nothing of devices beyond the names of claims.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from contracts.gang import NodeToleration
from contracts.ids import NodeName
from contracts.meta import ObjectMeta
from contracts.pod_terms import TopologySpreadConstraint
from contracts.quantity import Quantity
from contracts.structs import Int32, Int64, KubernetesExcerpt, KubernetesStruct


class Namespace(KubernetesExcerpt, frozen=True, kw_only=True):
    """A namespace; its labels admit admin access."""

    metadata: ObjectMeta = ObjectMeta()


class ResourceQuotaSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    """The spec of a ResourceQuota: how much its namespace may have."""

    hard: dict[str, Quantity] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """The status of a ResourceQuota: how much its namespace has."""

    used: dict[str, Quantity] = {}


class ResourceQuota(KubernetesExcerpt, frozen=True, kw_only=True):
    """A limit on what the objects of a namespace ask for together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class NodeTaint(KubernetesExcerpt, frozen=True, kw_only=True):
    """A taint on a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    """The spec of a Node: what keeps pods away."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()


class NodeCondition(KubernetesExcerpt, frozen=True, kw_only=True):
    """One observation of a node, such as `Ready`."""

    type: str = ""
    status: str = ""
    """`True`, `False` or `Unknown`."""


class NodeStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """The status of a Node: its resources and conditions."""

    allocatable: dict[str, Quantity] = {}
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubernetesExcerpt, frozen=True, kw_only=True):
    """A node of the cluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> NodeName:
        """The name that slices and pods use."""
        return NodeName(self.metadata.name)

    @property
    def is_ready(self) -> bool | None:
        """The Ready condition; None if there is none."""
        for condition in self.status.conditions:
            if condition.type == "Ready":
                return condition.status == "True"
        return None


class PodResourceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """A claim of a pod by name, or the template that makes it."""

    name: str = ""
    """Unique in the pod; containers refer to it."""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class ContainerResourceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """Which claim of the pod, and which of its requests, a container uses."""

    name: str = ""
    request: str = ""
    """Empty: all requests of the claim."""


class ResourceRequirements(KubernetesExcerpt, frozen=True, kw_only=True):
    """The resources of a container."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    claims: tuple[ContainerResourceClaim, ...] = ()


class ContainerPort(KubernetesExcerpt, frozen=True, kw_only=True):
    """A port of a container, and the port of the node that it takes, if any."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class Container(KubernetesExcerpt, frozen=True, kw_only=True):
    """A container; an init container with `Always` runs along (a sidecar)."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[dict[str, Any], ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    volume_mounts: tuple[dict[str, Any], ...] = ()
    security_context: dict[str, Any] = {}


class PodVolumeClaim(KubernetesExcerpt, frozen=True, kw_only=True):
    """The PersistentVolumeClaim that a volume is."""

    claim_name: str = ""


class ProjectedVolume(KubernetesExcerpt, frozen=True, kw_only=True):
    """A volume of files from several sources."""

    sources: tuple[dict[str, Any], ...] = ()


class PodVolume(KubernetesExcerpt, frozen=True, kw_only=True):
    """A volume of a pod, as far as it says which nodes can have it."""

    name: str = ""
    persistent_volume_claim: PodVolumeClaim | None = None
    ephemeral: dict[str, Any] | None = None
    """A claim is made for the pod alone, named after pod and volume."""
    projected: ProjectedVolume = ProjectedVolume()


class PodSchedulingGate(KubernetesExcerpt, frozen=True, kw_only=True):
    """Something that a pod waits for before it is scheduled."""

    name: str = ""


class PodSchedulingGroup(KubernetesExcerpt, frozen=True, kw_only=True):
    """The PodGroup that a pod is scheduled with (KEP-4671)."""

    pod_group_name: str | None = None


class PodSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    """The spec of a Pod."""

    active_deadline_seconds: Int64 | None = None
    """kubelet ends the pod so long after it began."""
    node_name: NodeName | None = None
    node_selector: dict[str, str] = {}
    tolerations: tuple[NodeToleration, ...] = ()
    affinity: dict[str, Any] = {}
    priority: Int32 | None = None
    """The API server sets it, by the class."""
    priority_class_name: str = ""
    preemption_policy: str | None = None
    """`PreemptLowerPriority` (None as well) or `Never`."""
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    """Of the pod as a whole (KEP-2837)."""
    overhead: dict[str, Quantity] = {}
    host_network: bool = False
    host_users: bool | None = None
    """False: the pod has a user namespace of its own."""
    security_context: dict[str, Any] = {}
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[PodVolume, ...] = ()


class PodResourceClaimStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """The ResourceClaim that was generated for a claim of the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    """None: the template makes none for this pod."""


class PodCondition(KubernetesExcerpt, frozen=True, kw_only=True):
    """One observation of a pod, such as `PodScheduled`."""

    type: str = ""
    status: str = ""
    """`True`, `False` or `Unknown`."""
    reason: str = ""
    message: str = ""


class PodStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    """How far a pod is."""

    phase: str = ""
    reason: str = ""
    """Why it is so, in one word; kubelet's, where it rejected the pod."""
    message: str = ""
    start_time: str = ""
    """When kubelet saw it first; RFC 3339."""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    """Where kube-scheduler makes room for it, or is about to bind it; empty: nowhere.
    """
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(KubernetesExcerpt, frozen=True, kw_only=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(KubernetesExcerpt, frozen=True, kw_only=True):
    """The pattern for the pods of a workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicatedPodTemplate(KubernetesExcerpt, frozen=True, kw_only=True):
    """So many equal pods of a workload."""

    name: str = ""
    """The role: a name as it is written (`GPU` of a RayCluster), or the field that it
    is under in lower case (`worker`); empty where a workload has only one."""
    count: Int64 = 1
    """Pods at one time."""
    is_counted: bool = True
    """True if the number is written, False if it is 1 by default."""
    template: PodTemplate = PodTemplate()
    path: str = "spec.template"
    """Field of the workload that holds the template."""


class Workload(KubernetesExcerpt, frozen=True, kw_only=True):
    """An object that makes pods: Job, StatefulSet, Deployment, MPIJob and so on."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    templates: tuple[ReplicatedPodTemplate, ...] = ()
