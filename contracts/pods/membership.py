"""Which gang a pod belongs to, and as which member: by our label, else by what made it.

The one place that reads it, for the publisher and for plans alike. Each row of
docs/workloads.md is a WorkloadAPI here. A pod says by itself to which gang it belongs;
how many pods make it whole may stand in another object (`owner`), which the caller
looks up. Names of others are those of the versions in docs/workloads.md. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from enum import StrEnum

from msgspec import Struct

from contracts.names import GANG, GANG_SIZE, MEMBER
from contracts.pods.kinds import HowDecided, find_kind
from contracts.workload import Pod

KUEUE = "kueue.x-k8s.io/"
"""Prefix of Kueue's labels, annotations and scheduling gates."""
KUEUE_GROUP = f"{KUEUE}pod-group-name"
KUEUE_FAST = f"{KUEUE}pod-group-fast-admission"
"""Annotation: the pods of the group may come one after the other."""
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
LWS = "leaderworkerset.sigs.k8s.io/"
EXCLUSIVE = f"{LWS}exclusive-topology"
"""Annotation: the leader is to be on a node before workers are made."""
JOB_SET = "jobset.sigs.k8s.io/"
KUBEFLOW = "training.kubeflow.org/"
RAY = "ray.io/"
VOLCANO = "volcano.sh/"
APP_WRAPPER = "workload.codeflare.dev/appwrapper"
KUBEFLOW_JOBS = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
"""Kinds of kubeflow.org/v1, whose operator makes the pods itself."""
MPI_JOB_V1 = "MPIJob.v1"
"""The MPIJob of kubeflow.org/v1 in an OwnerKey: another operator's."""
VOLCANO_GROUP = "batch.volcano.sh"
VOLCANO_JOB = f"Job.{VOLCANO_GROUP}"
"""Its kind in an OwnerKey."""
POD_GROUP = "PodGroup"
"""Kubernetes' own, in an OwnerKey."""
COMPOSITE = "CompositePodGroup"
"""Kubernetes' group of groups (KEP-6012)."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


class WorkloadAPI(StrEnum):
    """How pods say that they belong together; each can be switched off."""

    KUEUE = "KueuePodGroup"
    POD_GROUP = "PodGroup"
    """Kubernetes' own (KEP-4671)."""
    COMPOSITE_POD_GROUP = "CompositePodGroup"
    """PodGroups that Kubernetes' CompositePodGroups put together (KEP-6012)."""
    COSCHEDULING = "CoschedulingPodGroup"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    JOB_SET = "JobSet"
    """TrainJobs, too: they make JobSets."""
    APP_WRAPPER = "AppWrapper"
    MPI_JOB = "MPIJob"
    KUBEFLOW_JOB = "KubeflowJob"
    """Of kubeflow.org/v1: PyTorchJob, TFJob, XGBoostJob, JAXJob, PaddleJob, MPIJob."""
    VOLCANO_JOB = "VolcanoJob"
    RAY_CLUSTER = "RayCluster"
    STATEFUL_SET = "StatefulSet"
    INDEXED_JOB = "IndexedJob"
    JOB = "Job"


class OwnerKey(Struct, frozen=True, order=True):
    """The object that says how many pods make a gang whole."""

    kind: str
    """As in `kind`; a PodGroup of another group than Kubernetes' own with that."""
    namespace: str
    name: str


class Membership(Struct, frozen=True, kw_only=True):
    """Which gang a pod belongs to, and as what."""

    namespace: str
    group: str
    """Name of the gang; of a lone pod its own."""
    api: WorkloadAPI | None = None
    """By what; None: by our label, or alone."""
    is_lone: bool = False
    """True if the pod is a gang by itself."""
    member: str = ""
    """Its role in lower case, such as `worker`; empty: nothing says one."""
    role: str = ""
    """The pod's role as `owner` calls it, whatever our label says."""
    owner: OwnerKey | None = None
    """The object that says how many pods make the gang whole; None: the pods do."""
    invalid: str = ""
    """Why no gang can have the name that the pod gives; it is then lone, and waits."""
    run: str = ""
    """Tells runs of one name apart: pods of two runs are never one gang."""


def read_membership(pod: Pod, apis: Container[WorkloadAPI] = ()) -> Membership:
    """Return which gang a pod belongs to.

    That of our label; else of the first API, of those in `apis`, that puts it together
    with others; else one of its own, as is a pod whose annotation says a size of 1.
    """
    meta = pod.metadata
    gang = meta.labels.get(GANG, "")
    if not gang and meta.annotations.get(GANG_SIZE) != "1":
        for api, read in _READERS:
            found = read(pod) if api in apis else None
            if found is not None:
                return found
    return Membership(
        namespace=meta.namespace,
        group=gang or meta.name,
        is_lone=not gang,
        member=meta.labels.get(MEMBER, ""),
    )


def is_told_alone(pod: Pod, membership: Membership) -> bool:
    """True if a pod is a gang by itself, and its author should know.

    Nobody knows its maker's kind, or one may take its pods for a gang. Not one whose
    annotation says so.
    """
    owner, meta = pod.metadata.controller, pod.metadata
    known = find_kind(owner.api_version, owner.kind)
    is_surprising = known is None or known.decided == HowDecided.ALONE_AS_TOLD
    return (
        membership.is_lone
        and bool(owner.kind)
        and meta.annotations.get(GANG_SIZE) != "1"
        and is_surprising
    )


def explain_alone(pod: Pod) -> str:
    """Return why the pods of an object are decided one by one, and what helps."""
    owner = pod.metadata.controller
    known = find_kind(owner.api_version, owner.kind)
    why = "" if known is None else known.why_alone
    why = why or "this kind is not one that makes gangs"
    return f"{why}; the label {GANG} makes its pods one"


def list_owner_kinds(apis: Iterable[WorkloadAPI]) -> frozenset[str]:
    """Name the kinds that say the sizes of gangs which these APIs put together."""
    wanted = frozenset(apis)
    return frozenset(
        kind for kind, own in APIS_BY_OWNER.items() if not wanted.isdisjoint(own)
    )


def _make_membership(
    pod: Pod, api: WorkloadAPI, group: str, *, owner: str = "", **fields: str
) -> Membership:
    """Make a membership; `owner` is the kind of the object that has the group's name.

    The label that names a member wins over what the API calls it.
    """
    meta = pod.metadata
    role = fields.get("role", "")
    return Membership(
        namespace=meta.namespace,
        group=group,
        api=api,
        member=meta.labels.get(MEMBER, "") or role.lower(),
        role=role,
        owner=OwnerKey(owner, meta.namespace, group) if owner else None,
        run=fields.get("run", ""),
    )


# --- pods that name their group -------------------------------------------------------


def _kueue_group(pod: Pod) -> Membership | None:
    name = _label_or_annotation(pod, KUEUE_GROUP)
    return _make_membership(pod, WorkloadAPI.KUEUE, name) if name else None


def _kueue_whole_group(pod: Pod) -> Membership | None:
    """Read a group whose pods come all at once.

    Where they may come one by one, the row of what makes them knows how.
    """
    is_fast = pod.metadata.annotations.get(KUEUE_FAST) == "true"
    return None if is_fast else _kueue_group(pod)


def pod_group_of(pod: Pod) -> OwnerKey | None:
    """Return Kubernetes' own PodGroup of a pod; None: it has none."""
    group = pod.spec.scheduling_group
    name = None if group is None else group.pod_group_name
    return OwnerKey(POD_GROUP, pod.metadata.namespace, name) if name else None


def _pod_group(pod: Pod) -> Membership | None:
    owner = pod_group_of(pod)
    if owner is None:
        return None
    return _make_membership(pod, WorkloadAPI.POD_GROUP, owner.name, owner=POD_GROUP)


def _read_coscheduling(pod: Pod) -> Membership | None:
    name = pod.metadata.labels.get(COSCHEDULING_GROUP)
    if not name:
        return None
    owner = f"PodGroup.{COSCHEDULING_GROUP.partition('/')[0]}"
    return _make_membership(pod, WorkloadAPI.COSCHEDULING, name, owner=owner)


# --- pods that name what made them ----------------------------------------------------


def _leader_worker_set(pod: Pod) -> Membership | None:
    """Read a LeaderWorkerSet's pod: a leader and its workers are a gang."""
    labels = pod.metadata.labels
    name, index = labels.get(f"{LWS}name"), labels.get(f"{LWS}group-index")
    if not name or not index:
        return None
    role = "leader" if labels.get(f"{LWS}worker-index") == "0" else "worker"
    revision = labels.get(f"{LWS}template-revision-hash", "")
    return _make_membership(
        pod,
        WorkloadAPI.LEADER_WORKER_SET,
        f"{name}-{index}",
        role=role,
        run=revision,
    )


def _job_set(pod: Pod) -> Membership | None:
    name = _label_or_annotation(pod, f"{JOB_SET}jobset-name")
    if not name:
        return None
    uid, attempt = (
        _label_or_annotation(pod, f"{JOB_SET}{key}")
        for key in ("jobset-uid", "restart-attempt")
    )
    return _make_membership(
        pod,
        WorkloadAPI.JOB_SET,
        name,
        owner="JobSet",
        role=_label_or_annotation(pod, f"{JOB_SET}replicatedjob-name"),
        run=f"{uid}/{attempt}",
    )


def _mpi_job(pod: Pod) -> Membership | None:
    labels = pod.metadata.labels
    if labels.get(f"{KUBEFLOW}operator-name") != "mpi-operator":
        return None
    name = labels.get(f"{KUBEFLOW}job-name")
    role = labels.get(f"{KUBEFLOW}job-role", "")
    if not name:
        return None
    return _make_membership(pod, WorkloadAPI.MPI_JOB, name, owner="MPIJob", role=role)


def _app_wrapper(pod: Pod) -> Membership | None:
    """Read a pod of an AppWrapper, whatever of its components made it."""
    name = pod.metadata.labels.get(APP_WRAPPER)
    if not name:
        return None
    return _make_membership(pod, WorkloadAPI.APP_WRAPPER, name, owner="AppWrapper")


def _kubeflow_job(pod: Pod) -> Membership | None:
    owner = pod.metadata.controller
    if owner.kind not in KUBEFLOW_JOBS or owner.api_version != "kubeflow.org/v1":
        return None
    role = pod.metadata.labels.get(f"{KUBEFLOW}replica-type", "")
    return _make_membership(
        pod,
        WorkloadAPI.KUBEFLOW_JOB,
        owner.name,
        owner=MPI_JOB_V1 if owner.kind == "MPIJob" else owner.kind,
        role=role,
        run=owner.uid,
    )


def _volcano_job(pod: Pod) -> Membership | None:
    owner = pod.metadata.controller
    if owner.kind != "Job" or owner.api_version.partition("/")[0] != VOLCANO_GROUP:
        return None
    return _make_membership(
        pod,
        WorkloadAPI.VOLCANO_JOB,
        owner.name,
        owner=VOLCANO_JOB,
        role=_label_or_annotation(pod, f"{VOLCANO}task-spec"),
        run=owner.uid,
    )


def _ray_cluster(pod: Pod) -> Membership | None:
    labels = pod.metadata.labels
    name, controller = labels.get(f"{RAY}cluster"), pod.metadata.controller
    if not name or controller.kind != "RayCluster":
        return None
    is_head = labels.get(f"{RAY}node-type") == "head"
    role = "head" if is_head else labels.get(f"{RAY}group", "")
    return _make_membership(
        pod,
        WorkloadAPI.RAY_CLUSTER,
        name,
        owner="RayCluster",
        role=role,
        run=controller.uid,
    )


def _reader_of(kind: str, group: str, api: WorkloadAPI) -> _Reader:
    """Return a reader of pods that a controller of one kind makes itself."""

    def read(pod: Pod) -> Membership | None:
        owner = pod.metadata.controller
        if owner.kind != kind or owner.api_version.partition("/")[0] != group:
            return None
        if api == WorkloadAPI.INDEXED_JOB and not _label_or_annotation(
            pod, COMPLETION_INDEX
        ):
            return None
        return _make_membership(pod, api, owner.name, owner=kind, run=owner.uid)

    return read


def _read_job(pod: Pod) -> Membership | None:
    """Read a Job's pod that has no index: those with one are another row's."""
    if _label_or_annotation(pod, COMPLETION_INDEX):
        return None
    return _reader_of("Job", "batch", WorkloadAPI.JOB)(pod)


def _label_or_annotation(pod: Pod, name: str) -> str:
    """Return a label, or the annotation of the same name."""
    meta = pod.metadata
    return meta.labels.get(name, "") or meta.annotations.get(name, "")


_Reader = Callable[[Pod], Membership | None]
_READERS: tuple[tuple[WorkloadAPI, _Reader], ...] = (
    # First what names a group as such, then what made the pod, the outermost first: an
    # AppWrapper makes any of the others, a JobSet Jobs, a LeaderWorkerSet StatefulSets.
    (WorkloadAPI.KUEUE, _kueue_whole_group),
    (WorkloadAPI.POD_GROUP, _pod_group),
    (WorkloadAPI.COSCHEDULING, _read_coscheduling),
    (WorkloadAPI.APP_WRAPPER, _app_wrapper),
    (WorkloadAPI.LEADER_WORKER_SET, _leader_worker_set),
    (WorkloadAPI.JOB_SET, _job_set),
    (WorkloadAPI.MPI_JOB, _mpi_job),
    (WorkloadAPI.KUBEFLOW_JOB, _kubeflow_job),
    (WorkloadAPI.VOLCANO_JOB, _volcano_job),
    (WorkloadAPI.RAY_CLUSTER, _ray_cluster),
    (
        WorkloadAPI.STATEFUL_SET,
        _reader_of("StatefulSet", "apps", WorkloadAPI.STATEFUL_SET),
    ),
    (WorkloadAPI.INDEXED_JOB, _reader_of("Job", "batch", WorkloadAPI.INDEXED_JOB)),
    (WorkloadAPI.JOB, _read_job),
    (WorkloadAPI.KUEUE, _kueue_group),
)

APIS_BY_OWNER = {
    POD_GROUP: (WorkloadAPI.POD_GROUP,),
    COMPOSITE: (WorkloadAPI.COMPOSITE_POD_GROUP,),
    f"PodGroup.{COSCHEDULING_GROUP.partition('/')[0]}": (WorkloadAPI.COSCHEDULING,),
    "JobSet": (WorkloadAPI.JOB_SET,),
    "AppWrapper": (WorkloadAPI.APP_WRAPPER,),
    **dict.fromkeys(KUBEFLOW_JOBS, (WorkloadAPI.KUBEFLOW_JOB,)),
    "MPIJob": (WorkloadAPI.MPI_JOB,),
    MPI_JOB_V1: (WorkloadAPI.KUBEFLOW_JOB,),
    VOLCANO_JOB: (WorkloadAPI.VOLCANO_JOB,),
    "RayCluster": (WorkloadAPI.RAY_CLUSTER,),
    "StatefulSet": (WorkloadAPI.STATEFUL_SET,),
    "Job": (WorkloadAPI.INDEXED_JOB, WorkloadAPI.JOB),
}
"""By kind, the APIs whose gangs have the size and the name of such an object."""
