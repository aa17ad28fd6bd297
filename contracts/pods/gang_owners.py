"""Objects that say how many pods make a gang whole: of each kind, as one shape.

Job (batch/v1), StatefulSet, Deployment and ReplicaSet (apps/v1), JobSet
(jobset.x-k8s.io/v1alpha2), MPIJob (kubeflow.org/v2beta1), the jobs of kubeflow.org/v1,
Volcano's Job (batch.volcano.sh), AppWrapper (workload.codeflare.dev), RayCluster
(ray.io/v1) and the PodGroups of coscheduling (scheduling.x-k8s.io/v1alpha1) and of
Kubernetes (scheduling.k8s.io). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from contracts.errors import DecodeError
from contracts.gang_rules import GangTopology
from contracts.meta import ObjectMeta, OwnerReference
from contracts.pods.membership import (
    KUBEFLOW_JOBS,
    VOLCANO_GROUP,
    VOLCANO_JOB,
    OwnerKey,
)
from contracts.pods.templates import MAX_REPLICAS, read_workload
from contracts.shapes import read
from contracts.structs import KubernetesExcerpt

_INDEXES = re.compile(r"(?P<first>\d{1,10})(-(?P<last>\d{1,10}))?", re.ASCII)
"""Of a Job, one or from one to another."""


class OwnerRole(Struct, frozen=True, kw_only=True):
    """Equal pods of a gang."""

    name: str = ""
    """The member that its pods are; empty: all pods are of this role."""
    count: int
    """Pods at one time."""
    after: tuple[str, ...] = ()
    """Roles that must run or be over before its pods are made."""


class ScaledNumber(Struct, frozen=True, kw_only=True):
    """The number by which people scale an object."""

    field: str
    """Such as `replicas`."""
    count: int
    """Pods at one time, whatever has ended."""


class GangOwner(Struct, frozen=True, kw_only=True):
    """How many pods of which roles an object has at one time."""

    key: OwnerKey
    uid: str
    controller: OwnerReference = OwnerReference()
    """The object's controller; an empty reference if it has none."""
    created: str = ""
    """RFC 3339, whole seconds, UTC; empty: its pods tell whose they are."""
    roles: tuple[OwnerRole, ...] = ()
    minimum: int | None = None
    """So many pods of whatever role make it whole; None: all of every role."""
    counts_succeeded: bool = True
    """True if succeeded pods count, as `roles` includes them."""
    scale: ScaledNumber | None = None
    """None: it has no such number, or several."""
    is_gang: bool = True
    """True if its pods form a gang; False: each is decided by itself."""
    priority: int | None = None
    """Of the gang; None: as its pods have."""
    priority_class: str = ""
    """The PriorityClass by which the API server sets the priority; empty: none."""
    preemption_policy: str | None = None
    """What kube-scheduler may preempt for it; None: it does not say."""
    topology: tuple[GangTopology, ...] = ()
    """Topology rules of its pods, besides those that they declare themselves."""
    not_modelled: str = ""
    """The field that cannot be decided yet; empty: none."""


# --- excerpts of the kinds ------------------------------------------------------------


class _JobSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    parallelism: int = 1
    completions: int | None = None

    @property
    def at_once(self) -> int:
        return self.scale.count

    @property
    def scale(self) -> ScaledNumber:
        if self.completions is None or self.parallelism <= self.completions:
            return ScaledNumber(field="parallelism", count=self.parallelism)
        return ScaledNumber(field="completions", count=self.completions)


class _JobStatus(KubernetesExcerpt, frozen=True, kw_only=True):
    succeeded: int = 0
    failed_indexes: str | None = None


class _JobExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()


class _DeploymentSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1


class _DeploymentExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _DeploymentSpec = _DeploymentSpec()


class _StatefulSetSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1
    pod_management_policy: str = "OrderedReady"


class _StatefulSetExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _StatefulSetSpec = _StatefulSetSpec()


class _JobTemplate(KubernetesExcerpt, frozen=True, kw_only=True):
    spec: _JobSpec = _JobSpec()


class _DependsOn(KubernetesExcerpt, frozen=True, kw_only=True):
    name: str = ""


class _ReplicatedJob(KubernetesExcerpt, frozen=True, kw_only=True):
    name: str = ""
    replicas: int = 1
    template: _JobTemplate = _JobTemplate()
    depends_on: tuple[_DependsOn, ...] = ()


class _StartupPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    startup_policy_order: str = "AnyOrder"


class _JobSetSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    replicated_jobs: tuple[_ReplicatedJob, ...] = ()
    startup_policy: _StartupPolicy = _StartupPolicy()


class _JobSetExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSetSpec = _JobSetSpec()


class _Replicas(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1


class _MinAvailable(KubernetesExcerpt, frozen=True, kw_only=True):
    min_available: int | None = None


class _MPIJobSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    mpi_replica_specs: dict[str, _Replicas] = {}
    launcher_creation_policy: str = "AtStartup"


class _MPIJobExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _MPIJobSpec = _MPIJobSpec()


class _RunPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    scheduling_policy: _MinAvailable = _MinAvailable()


class _KubeflowSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    run_policy: _RunPolicy = _RunPolicy()
    jax_replica_specs: dict[str, _Replicas] = {}
    mpi_replica_specs: dict[str, _Replicas] = {}
    paddle_replica_specs: dict[str, _Replicas] = {}
    pytorch_replica_specs: dict[str, _Replicas] = {}
    tf_replica_specs: dict[str, _Replicas] = {}
    xgb_replica_specs: dict[str, _Replicas] = {}

    @property
    def replica_specs(self) -> dict[str, _Replicas]:
        """Return those of its kind; the others are empty."""
        return {
            **self.jax_replica_specs,
            **self.mpi_replica_specs,
            **self.paddle_replica_specs,
            **self.pytorch_replica_specs,
            **self.tf_replica_specs,
            **self.xgb_replica_specs,
        }


class _KubeflowExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _KubeflowSpec = _KubeflowSpec()


class _VolcanoTask(KubernetesExcerpt, frozen=True, kw_only=True):
    name: str = ""
    replicas: int = 1


class _VolcanoSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    min_available: int | None = None
    tasks: tuple[_VolcanoTask, ...] = ()


class _VolcanoExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _VolcanoSpec = _VolcanoSpec()


class _PodSet(KubernetesExcerpt, frozen=True, kw_only=True):
    replicas: int = 1


class _Component(KubernetesExcerpt, frozen=True, kw_only=True):
    template: dict[str, Any] = {}
    pod_sets: tuple[_PodSet, ...] = ()


class _AppWrapperSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    components: tuple[_Component, ...] = ()


class _AppWrapperExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _AppWrapperSpec = _AppWrapperSpec()


class _WorkerGroup(KubernetesExcerpt, frozen=True, kw_only=True):
    group_name: str = ""
    replicas: int = 0
    min_replicas: int = 0
    max_replicas: int | None = None
    num_of_hosts: int = 1
    suspend: bool = False

    @property
    def count(self) -> int:
        """Pods of the group, as KubeRay counts them."""
        wanted = max(self.replicas, self.min_replicas)
        if self.max_replicas is not None:
            wanted = max(self.min_replicas, min(wanted, self.max_replicas))
        return 0 if self.suspend else wanted * self.num_of_hosts


class _RayClusterSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    worker_group_specs: tuple[_WorkerGroup, ...] = ()


class _RayClusterExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _RayClusterSpec = _RayClusterSpec()


class _CoschedulingSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    min_member: int = 1


class _CoschedulingExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _CoschedulingSpec = _CoschedulingSpec()


class _GangPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    min_count: int = 1


class _SchedulingPolicy(KubernetesExcerpt, frozen=True, kw_only=True):
    gang: _GangPolicy | None = None


class _TopologyConstraint(KubernetesExcerpt, frozen=True, kw_only=True):
    key: str = ""


class _SchedulingConstraints(KubernetesExcerpt, frozen=True, kw_only=True):
    topology: tuple[_TopologyConstraint, ...] = ()


class _PodGroupSpec(KubernetesExcerpt, frozen=True, kw_only=True):
    parent_composite_pod_group_name: str | None = None
    scheduling_policy: _SchedulingPolicy = _SchedulingPolicy()
    scheduling_constraints: _SchedulingConstraints = _SchedulingConstraints()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None


class _PodGroupExcerpt(KubernetesExcerpt, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _PodGroupSpec = _PodGroupSpec()


# --- reading them ---------------------------------------------------------------------


def read_gang_owner(raw: Mapping[str, Any]) -> GangOwner | None:
    """Read how many pods an object has at one time; None: no such kind.

    Raises:
        DecodeError: a value is not of the type that its field has, or a role has
            more pods than `MAX_REPLICAS`.
    """
    kind, api_version = str(raw.get("kind")), str(raw.get("apiVersion"))
    group = api_version.partition("/")[0]
    found = _READERS.get((group, kind))
    if found is None:
        return None
    metadata = raw.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise DecodeError(kind, "metadata", "Expected `object`")
    what = f"{kind} {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    owner = found(raw, what)
    for number, role in enumerate(owner.roles):
        if role.count > MAX_REPLICAS:
            reason = f"Expected at most {MAX_REPLICAS} pods, got {role.count}"
            raise DecodeError(what, _path_of(owner, number), reason)
    return owner


def _path_of(owner: GangOwner, number: int) -> str:
    """Return the field that says how many pods a role has."""
    role = owner.roles[number].name
    match owner.key.kind:
        case "JobSet":
            return f"spec.replicatedJobs[{number}]"
        case "MPIJob":
            return f"spec.mpiReplicaSpecs[{role}]"
        case "RayCluster":
            return f"spec.workerGroupSpecs[{number - 1}]"  # the first is the head
        case _:
            return "spec"


def _read_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a Job: what it still wants to run, beside what has succeeded."""
    job = read(raw, _JobExcerpt, what, [])
    spec, status = job.spec, job.status
    count = spec.parallelism
    if spec.completions is not None:
        done = status.succeeded + _count_indexes(status.failed_indexes or "")
        count = min(count, spec.completions - done)
    elif status.succeeded:
        count = 0  # a work queue that is empty starts no pod any more
    return GangOwner(
        key=_owner_key("Job", job.metadata),
        uid=job.metadata.uid,
        controller=job.metadata.controller,
        roles=(OwnerRole(count=max(count, 0)),),
        scale=spec.scale,
        counts_succeeded=False,
    )


def _count_indexes(text: str) -> int:
    """Count the indexes in a text such as `1,3-5`; what is no index counts nothing."""
    found = (_INDEXES.fullmatch(part) for part in text.split(","))
    return sum(
        int(part["last"] or part["first"]) - int(part["first"]) + 1
        for part in found
        if part is not None
    )


def _stateful_set(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a StatefulSet; pods that come one after the other are no gang."""
    found = read(raw, _StatefulSetExcerpt, what, [])
    return GangOwner(
        key=_owner_key("StatefulSet", found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=(OwnerRole(count=found.spec.replicas),),
        scale=ScaledNumber(field="replicas", count=found.spec.replicas),
        is_gang=found.spec.pod_management_policy == "Parallel",
    )


def _deployment(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a Deployment or ReplicaSet: its pods are no gang unless they say so."""
    found = read(raw, _DeploymentExcerpt, what, [])
    return GangOwner(
        key=_owner_key(str(raw["kind"]), found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=(OwnerRole(count=found.spec.replicas),),
        scale=ScaledNumber(field="replicas", count=found.spec.replicas),
        is_gang=False,
    )


def _job_set(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, _JobSetExcerpt, what, [])
    spec = found.spec
    in_order = spec.startup_policy.startup_policy_order == "InOrder"
    roles: list[OwnerRole] = []
    for job in spec.replicated_jobs:
        after = [needed.name for needed in job.depends_on]
        if in_order and roles:
            after.append(roles[-1].name)
        count = job.replicas * job.template.spec.at_once
        roles.append(OwnerRole(name=job.name, count=count, after=tuple(after)))
    return GangOwner(
        key=_owner_key("JobSet", found.metadata),
        uid=found.metadata.uid,
        roles=tuple(roles),
    )


def _mpi_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, _MPIJobExcerpt, what, [])
    is_last = found.spec.launcher_creation_policy == "WaitForWorkersReady"
    return GangOwner(
        key=_owner_key("MPIJob", found.metadata),
        uid=found.metadata.uid,
        created=found.metadata.creation_timestamp or "",
        roles=tuple(
            OwnerRole(
                name=name.lower(),
                count=spec.replicas,
                after=("worker",) if is_last and name == "Launcher" else (),
            )
            for name, spec in found.spec.mpi_replica_specs.items()
        ),
    )


def _read_mpi_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read an MPIJob; that of kubeflow.org/v1 is another operator's."""
    is_old = str(raw.get("apiVersion")) == "kubeflow.org/v1"
    return (_kubeflow_job if is_old else _mpi_job)(raw, what)


def _kubeflow_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a job of the Training Operator: pods of each role, all at once."""
    found = read(raw, _KubeflowExcerpt, what, [])
    spec = found.spec
    roles = tuple(
        OwnerRole(name=name.lower(), count=replicas.replicas)
        for name, replicas in spec.replica_specs.items()
    )
    return GangOwner(
        key=_owner_key(str(raw["kind"]), found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        created=found.metadata.creation_timestamp or "",
        roles=roles,
        minimum=_below(spec.run_policy.scheduling_policy.min_available, roles),
    )


def _volcano_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a Volcano Job: `minAvailable` pods of whatever task begin."""
    found = read(raw, _VolcanoExcerpt, what, [])
    roles = tuple(
        OwnerRole(name=task.name, count=task.replicas) for task in found.spec.tasks
    )
    return GangOwner(
        key=_owner_key(VOLCANO_JOB, found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=roles,
        minimum=_below(found.spec.min_available, roles),
    )


def _below(minimum: int | None, roles: tuple[OwnerRole, ...]) -> int | None:
    """Return a minimum that is below the number of all pods."""
    total = sum(role.count for role in roles)
    return minimum if minimum is not None and 0 < minimum < total else None


def _app_wrapper(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read an AppWrapper: the pods of all its components are one gang."""
    found = read(raw, _AppWrapperExcerpt, what, [])
    components = found.spec.components
    total = sum(_count_component(component, what) for component in components)
    return GangOwner(
        key=_owner_key("AppWrapper", found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=(OwnerRole(count=total),),
    )


def _count_component(component: _Component, what: str) -> int:
    """Count the pods of what a component makes: as its pod sets say, else itself."""
    if component.pod_sets:
        return sum(pods.replicas for pods in component.pod_sets)
    if component.template.get("kind") == "Pod":
        return 1
    owner = read_gang_owner(component.template)
    if owner is not None and owner.roles:
        return sum(role.count for role in owner.roles)
    workload = read_workload(component.template, what, [])
    templates = () if workload is None else workload.templates
    return sum(each.count for each in templates)


def _ray_cluster(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, _RayClusterExcerpt, what, [])
    groups = found.spec.worker_group_specs
    return GangOwner(
        key=_owner_key("RayCluster", found.metadata),
        uid=found.metadata.uid,
        roles=(
            OwnerRole(name="head", count=1),
            *(OwnerRole(name=group.group_name, count=group.count) for group in groups),
        ),
    )


def _read_coscheduling(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, _CoschedulingExcerpt, what, [])
    return GangOwner(
        key=_owner_key("PodGroup.scheduling.x-k8s.io", found.metadata),
        uid=found.metadata.uid,
        minimum=found.spec.min_member,
    )


def _pod_group(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read Kubernetes' own PodGroup; only a policy of `gang` makes it one."""
    found = read(raw, _PodGroupExcerpt, what, [])
    spec = found.spec
    gang = spec.scheduling_policy.gang
    topology = spec.scheduling_constraints.topology
    not_modelled = ""
    if topology and gang is None:
        not_modelled = "spec.schedulingConstraints.topology"
    elif spec.parent_composite_pod_group_name:
        not_modelled = "spec.parentCompositePodGroupName"
    return GangOwner(
        key=_owner_key("PodGroup", found.metadata),
        uid=found.metadata.uid,
        minimum=None if gang is None else gang.min_count,
        is_gang=gang is not None,
        priority=spec.priority,
        priority_class=spec.priority_class_name,
        preemption_policy=spec.preemption_policy,
        topology=tuple(GangTopology(key=constraint.key) for constraint in topology),
        not_modelled=not_modelled,
    )


def _owner_key(kind: str, metadata: ObjectMeta) -> OwnerKey:
    return OwnerKey(kind, metadata.namespace, metadata.name)


_READERS: dict[tuple[str, str], Callable[[Mapping[str, Any], str], GangOwner]] = {
    ("batch", "Job"): _read_job,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _deployment,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    **{("kubeflow.org", kind): _kubeflow_job for kind in KUBEFLOW_JOBS},
    ("kubeflow.org", "MPIJob"): _read_mpi_job,
    (VOLCANO_GROUP, "Job"): _volcano_job,
    ("workload.codeflare.dev", "AppWrapper"): _app_wrapper,
    ("ray.io", "RayCluster"): _ray_cluster,
    ("scheduling.x-k8s.io", "PodGroup"): _read_coscheduling,
    ("scheduling.k8s.io", "PodGroup"): _pod_group,
}
