"""Objects that say how many pods make a gang whole: of each kind, as one shape.

Job (batch/v1), StatefulSet, Deployment and ReplicaSet (apps/v1), JobSet
(jobset.x-k8s.io/v1alpha2), MPIJob (kubeflow.org/v2beta1), the jobs of kubeflow.org/v1,
Volcano's Job (batch.volcano.sh), AppWrapper (workload.codeflare.dev), RayCluster
(ray.io/v1), the PodGroups of coscheduling (scheduling.x-k8s.io/v1alpha1) and of
Kubernetes (scheduling.k8s.io), and Kubernetes' CompositePodGroups. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from contracts.errors import DecodeError
from contracts.gang_rules import GangTopology
from contracts.meta import ObjectMeta, OwnerReference
from contracts.pods.group_trees import GroupNode
from contracts.pods.membership import (
    COMPOSITE,
    KUBEFLOW_JOBS,
    MPI_JOB_V1,
    POD_GROUP,
    VOLCANO_GROUP,
    VOLCANO_JOB,
    OwnerKey,
)
from contracts.pods.owner_excerpts import (
    AppWrapperExcerpt,
    CoschedulingExcerpt,
    DeploymentExcerpt,
    GroupExcerpt,
    JobExcerpt,
    JobSetExcerpt,
    KubeflowExcerpt,
    MPIJobExcerpt,
    RayClusterExcerpt,
    SchedulingConstraints,
    StatefulSetExcerpt,
    VolcanoExcerpt,
    WrappedComponent,
)
from contracts.pods.templates import MAX_REPLICAS, read_workload
from contracts.shapes import read

MAX_EXECUTION = "kueue.x-k8s.io/max-exec-time-seconds"
"""Label of a job: Kueue ends its pods so many seconds after it began them."""
_INDEXES = re.compile(r"(?P<first>\d{1,10})(-(?P<last>\d{1,10}))?", re.ASCII)
"""Of a Job, one or from one to another."""


class OwnerRole(Struct, frozen=True, kw_only=True):
    """Equal pods of a gang."""

    name: str = ""
    """The member that its pods are; empty: all pods are of this role."""
    count: int
    """Pods at one time."""
    least: int | None = None
    """So many are enough for the gang to begin; None: all."""
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
    """So many pods make it whole, where there are no roles."""
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
    lasts_s: int | None = None
    """Its pods are ended after so many seconds; None: never."""
    topology: tuple[GangTopology, ...] = ()
    """Topology rules of its pods, besides those that they declare themselves."""
    not_modelled: str = ""
    """The object and its field that cannot be decided yet; empty: none."""
    parent: str = ""
    """The CompositePodGroup that a PodGroup or CompositePodGroup is in; empty: none."""
    workload: str = ""
    """The Workload that a PodGroup or CompositePodGroup was made from."""
    ends_as_one: bool = False
    """True if kube-scheduler preempts all that is in such a group, or nothing."""
    tree: GroupNode | None = None
    """The PodGroups that are one gang; None: it is not made of several."""
    unseen: OwnerKey | None = None
    """A CompositePodGroup above it that is not seen."""
    fault: str = ""
    """Why kube-scheduler never binds pods of such groups; empty: it does."""


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
    """Read a Job: what it still wants to run, beside what has succeeded.

    Its `scheduling` (KEP-5547) may say that fewer are enough, or that it is no gang.
    """
    job = read(raw, JobExcerpt, what, [])
    spec, status = job.spec, job.status
    count = spec.parallelism
    if spec.completions is not None:
        done = status.succeeded + _count_indexes(status.failed_indexes or "")
        count = min(count, spec.completions - done)
    elif status.succeeded:
        count = 0  # a work queue that is empty starts no pod any more
    count = max(count, 0)
    policy = spec.scheduling.scheduling_policy
    least = None if policy.gang is None else policy.gang.min_count
    topology = _topology_of(spec.scheduling.scheduling_constraints)
    not_modelled = ""
    if policy.basic is not None and topology:
        not_modelled = f"Job {job.metadata.name}: spec.scheduling.schedulingConstraints"
    return GangOwner(
        key=_owner_key("Job", job.metadata),
        uid=job.metadata.uid,
        controller=job.metadata.controller,
        roles=(
            OwnerRole(count=count, least=least if least and least < count else None),
        ),
        is_gang=policy.basic is None,
        lasts_s=_read_lasts(job.metadata, spec.active_deadline_seconds),
        topology=topology,
        not_modelled=not_modelled,
        scale=_scale_job(spec.parallelism, spec.completions),
        counts_succeeded=False,
    )


def _read_lasts(metadata: ObjectMeta, deadline_s: int | None) -> int | None:
    """Return after how many seconds pods are ended: by Kueue, or by a deadline."""
    text = metadata.labels.get(MAX_EXECUTION, "")
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    return deadline_s


def _scale_job(parallelism: int, completions: int | None) -> ScaledNumber:
    """Return the smaller number of the two, which bounds the pods of a Job."""
    if completions is None or parallelism <= completions:
        return ScaledNumber(field="parallelism", count=parallelism)
    return ScaledNumber(field="completions", count=completions)


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
    found = read(raw, StatefulSetExcerpt, what, [])
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
    found = read(raw, DeploymentExcerpt, what, [])
    return GangOwner(
        key=_owner_key(str(raw["kind"]), found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=(OwnerRole(count=found.spec.replicas),),
        scale=ScaledNumber(field="replicas", count=found.spec.replicas),
        is_gang=False,
    )


def _job_set(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, JobSetExcerpt, what, [])
    spec = found.spec
    deadlines = [j.template.spec.active_deadline_seconds for j in spec.replicated_jobs]
    longest = max((each for each in deadlines if each is not None), default=None)
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
        lasts_s=_read_lasts(found.metadata, None if None in deadlines else longest),
        roles=tuple(roles),
    )


def _mpi_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, MPIJobExcerpt, what, [])
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
    found = read(raw, KubeflowExcerpt, what, [])
    spec = found.spec
    kind = MPI_JOB_V1 if raw["kind"] == "MPIJob" else str(raw["kind"])
    roles = tuple(
        OwnerRole(name=name.lower(), count=replicas.replicas)
        for name, replicas in spec.replica_specs.items()
    )
    return GangOwner(
        key=_owner_key(kind, found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        created=found.metadata.creation_timestamp or "",
        lasts_s=_read_lasts(found.metadata, spec.run_policy.active_deadline_seconds),
        roles=_with_least(roles, spec.run_policy.scheduling_policy.min_available),
    )


def _volcano_job(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a Volcano Job: `minAvailable` pods begin, and of each task its own.

    A minimum of the Job below the sum of those of its tasks is about the Job alone.

    Source: volcano.sh/volcano, `CheckTaskReady` and the defaults of its webhook.
    """
    found = read(raw, VolcanoExcerpt, what, [])
    tasks = [
        replace(task, name=task.name or f"default{number}")
        for number, task in enumerate(found.spec.tasks)
    ]
    roles = tuple(
        OwnerRole(name=task.name, count=task.replicas, after=task.depends_on.name)
        for task in tasks
    )
    needed = {task.name: task.least for task in tasks}
    minimum = found.spec.min_available or sum(needed.values())
    floors = needed if minimum >= sum(needed.values()) else {}
    return GangOwner(
        key=_owner_key(VOLCANO_JOB, found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=_with_least(roles, minimum, floors),
    )


def _with_least(
    roles: tuple[OwnerRole, ...], minimum: int | None, floors: Mapping[str, int] = {}
) -> tuple[OwnerRole, ...]:
    """Share a minimum of all pods out to roles; None or 0: all pods are needed."""
    counts = {role.name: role.count for role in roles}
    if not minimum or minimum >= sum(counts.values()) or len(counts) < len(roles):
        return roles
    least = share_minimum(counts, minimum, floors)
    return tuple(
        role
        if least[role.name] >= role.count
        else replace(role, least=least[role.name])
        for role in roles
    )


def share_minimum(
    counts: Mapping[str, int], minimum: int, floors: Mapping[str, int] = {}
) -> dict[str, int]:
    """Return how many pods of each role make up a minimum of pods of whatever role.

    The largest roles give way first. None gives its last pod, nor what is below its
    floor, so it may be more than `minimum` together.
    """
    least = dict(counts)
    beyond = sum(counts.values()) - minimum
    for name in sorted(counts, key=lambda name: -counts[name]):
        spare = counts[name] - floors.get(name, min(counts[name], 1))
        given = max(min(beyond, spare), 0)
        least[name] -= given
        beyond -= given
    return least


def _app_wrapper(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read an AppWrapper: the pods of all its components are one gang."""
    found = read(raw, AppWrapperExcerpt, what, [])
    components = found.spec.components
    total = sum(_count_component(component, what) for component in components)
    return GangOwner(
        key=_owner_key("AppWrapper", found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        roles=(OwnerRole(count=total),),
    )


def _count_component(component: WrappedComponent, what: str) -> int:
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
    found = read(raw, RayClusterExcerpt, what, [])
    groups, scales = (
        found.spec.worker_group_specs,
        found.spec.enable_in_tree_autoscaling,
    )
    return GangOwner(
        key=_owner_key("RayCluster", found.metadata),
        uid=found.metadata.uid,
        roles=(
            OwnerRole(name="head", count=1),
            *(
                OwnerRole(
                    name=group.group_name,
                    count=group.count,
                    least=group.least if scales else None,
                )
                for group in groups
            ),
        ),
    )


def _read_coscheduling(raw: Mapping[str, Any], what: str) -> GangOwner:
    found = read(raw, CoschedulingExcerpt, what, [])
    return GangOwner(
        key=_owner_key("PodGroup.scheduling.x-k8s.io", found.metadata),
        uid=found.metadata.uid,
        minimum=found.spec.min_member,
    )


def _pod_group(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read Kubernetes' own PodGroup; only a policy of `gang` makes it one."""
    found = _group(raw, what, POD_GROUP)
    name, field = f"PodGroup {found.key.name}", ""
    if found.topology and not found.is_gang:
        field = "spec.schedulingConstraints.topology"
    elif found.parent:
        field = "spec.parentCompositePodGroupName"
    return replace(found, not_modelled=field and f"{name}: {field}")


def _composite_pod_group(raw: Mapping[str, Any], what: str) -> GangOwner:
    """Read a group of groups; the least number is of groups, not of pods."""
    return _group(raw, what, COMPOSITE)


def _group(raw: Mapping[str, Any], what: str, kind: str) -> GangOwner:
    found = read(raw, GroupExcerpt, what, [])
    spec = found.spec
    gang = spec.scheduling_policy.gang
    least = None
    if gang is not None:
        least = gang.min_count if kind == POD_GROUP else gang.min_group_count
    return GangOwner(
        key=_owner_key(kind, found.metadata),
        uid=found.metadata.uid,
        controller=found.metadata.controller,
        minimum=None if gang is None else least or 1,
        is_gang=gang is not None,
        priority=spec.priority,
        priority_class=spec.priority_class_name,
        preemption_policy=spec.preemption_policy,
        topology=_topology_of(spec.scheduling_constraints),
        parent=spec.parent_composite_pod_group_name or "",
        workload=spec.workload_ref.workload_name,
        ends_as_one=spec.disruption_mode.all is not None,
    )


def _topology_of(constraints: SchedulingConstraints) -> tuple[GangTopology, ...]:
    return tuple(GangTopology(key=each.key) for each in constraints.topology)


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
    ("scheduling.k8s.io", POD_GROUP): _pod_group,
    ("scheduling.k8s.io", COMPOSITE): _composite_pod_group,
}
