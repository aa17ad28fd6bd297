"""What makes pods, and what the pods that it makes say of it, as raw objects.

Labels, annotations and owner references are what the projects' controllers write, read
in JobSet v0.12.0, LeaderWorkerSet v0.10.0, MPI Operator v0.8.0, Trainer v2.3.0, KubeRay
v1.7.0, Kueue v0.19.2 and scheduler-plugins v0.34.7. Nothing of theirs runs here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contracts.kubernetes.decode import decode_object
from contracts.names import GATE
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import WorkloadAPI
from contracts.workload import Pod
from publisher.gangs.view import View
from tests.builders.values import NAMESPACE

Json = dict[str, Any]
OWNER_UID = "uid-owner"
VERSIONS = {
    "Job": "batch/v1",
    "StatefulSet": "apps/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "MPIJob": "kubeflow.org/v2beta1",
    "RayCluster": "ray.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    **dict.fromkeys(("JAXJob", "PaddleJob", "TFJob", "XGBoostJob"), "kubeflow.org/v1"),
    "VolcanoJob": "batch.volcano.sh/v1alpha1",
    "AppWrapper": "workload.codeflare.dev/v1beta2",
}


def owner_object(
    kind: str, name: str, spec: Json, *, uid: str = OWNER_UID, **more: Any
) -> Json:
    """Make an object that says how many pods it has."""
    return {
        "apiVersion": VERSIONS[kind],
        "kind": kind.removeprefix("Volcano"),
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid},
        "spec": spec,
        **more,
    }


def pod_group_of_coscheduling(name: str, minimum: int) -> Json:
    """Make the PodGroup of scheduler-plugins."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": OWNER_UID},
        "spec": {"minMember": minimum, "scheduleTimeoutSeconds": 60},
    }


def job_set_spec(*jobs: Json, order: str = "") -> Json:
    """Make a JobSet's spec of replicated jobs."""
    policy = {"startupPolicy": {"startupPolicyOrder": order}} if order else {}
    return {"replicatedJobs": list(jobs), **policy}


def replicated_job(
    name: str, replicas: int = 1, pods: int = 1, after: str = ""
) -> Json:
    """Make Jobs of so many pods each; `after`: once those of that name are over."""
    depends = [{"name": after, "status": "Complete"}] if after else []
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"parallelism": pods, "completions": pods}},
        **({"dependsOn": depends} if depends else {}),
    }


def controlled_by(kind: str, name: str, uid: str = OWNER_UID) -> Json:
    """Refer to the controller of a pod."""
    return {
        "apiVersion": VERSIONS[kind],
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def job_pod_marks(name: str, index: int | None = None, *, uid: str = OWNER_UID) -> Json:
    """Give the metadata of a Job's pod; an Indexed Job numbers them."""
    numbered = {} if index is None else {_INDEX: str(index)}
    labels = {
        "batch.kubernetes.io/job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": name,
        "controller-uid": uid,
        **numbered,
    }
    return {
        "labels": labels,
        "annotations": numbered,
        "ownerReferences": [controlled_by("Job", name, uid)],
    }


def stateful_set_pod_marks(name: str, index: int, *, uid: str = OWNER_UID) -> Json:
    """Give the metadata of a StatefulSet's pod."""
    return {
        "labels": {
            "apps.kubernetes.io/pod-index": str(index),
            "statefulset.kubernetes.io/pod-name": f"{name}-{index}",
        },
        "ownerReferences": [controlled_by("StatefulSet", name, uid)],
    }


def job_set_pod_marks(
    name: str, job: str, job_index: int = 0, index: int = 0, *, attempt: int = 0
) -> Json:
    """Give the metadata of a pod of a JobSet's Job."""
    child = f"{name}-{job}-{job_index}"
    own = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/jobset-uid": OWNER_UID,
        "jobset.sigs.k8s.io/replicatedjob-name": job,
        "jobset.sigs.k8s.io/job-index": str(job_index),
        "jobset.sigs.k8s.io/restart-attempt": str(attempt),
    }
    marks = job_pod_marks(child, index, uid=f"uid-{child}-{attempt}")
    return {
        "labels": marks["labels"] | own,
        "annotations": marks["annotations"] | own,
        "ownerReferences": marks["ownerReferences"],
    }


def leader_worker_set_pod_marks(
    name: str, group: int, worker: int, size: int, *, revision: str = "a1"
) -> Json:
    """Give the metadata of a pod of a LeaderWorkerSet: worker 0 is the leader."""
    leader = f"{name}-{group}"
    return {
        "labels": {
            "leaderworkerset.sigs.k8s.io/name": name,
            "leaderworkerset.sigs.k8s.io/group-index": str(group),
            "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
            "leaderworkerset.sigs.k8s.io/template-revision-hash": revision,
        },
        "annotations": {"leaderworkerset.sigs.k8s.io/size": str(size)},
        "ownerReferences": [
            controlled_by("StatefulSet", leader if worker else name, f"uid-{leader}")
        ],
    }


def mpi_job_pod_marks(
    name: str, role: str, *, uid: str = OWNER_UID, launcher_uid: str = "uid-launcher"
) -> Json:
    """Give the metadata of a pod of an MPIJob: its launcher is a Job's."""
    labels = {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/job-role": role,
    }
    if role == "launcher":
        marks = job_pod_marks(f"{name}-launcher", uid=launcher_uid)
        return marks | {"labels": marks["labels"] | labels}
    return {"labels": labels, "ownerReferences": [controlled_by("MPIJob", name, uid)]}


def ray_cluster_pod_marks(name: str, group: str, *, uid: str = OWNER_UID) -> Json:
    """Give the metadata of a pod of a RayCluster; the group `head` is the head's."""
    is_head = group == "head"
    return {
        "labels": {
            "ray.io/cluster": name,
            "ray.io/is-ray-node": "yes",
            "ray.io/node-type": "head" if is_head else "worker",
            "ray.io/group": "headgroup" if is_head else group,
        },
        "ownerReferences": [controlled_by("RayCluster", name, uid)],
    }


def kubeflow_pod_marks(kind: str, name: str, role: str, *, uid: str) -> Json:
    """Give the metadata of a pod of a job of the Training Operator."""
    labels = {
        "training.kubeflow.org/operator-name": f"{kind.lower()}-controller",
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/replica-type": role,
    }
    return {"labels": labels, "ownerReferences": [controlled_by(kind, name, uid)]}


def volcano_pod_marks(name: str, task: str, *, uid: str) -> Json:
    """Give the metadata of a pod of a Volcano Job."""
    return {
        "labels": {"volcano.sh/job-name": name, "volcano.sh/task-spec": task},
        "annotations": {"volcano.sh/task-spec": task},
        "ownerReferences": [
            controlled_by("Job", name, uid)
            | {"apiVersion": "batch.volcano.sh/v1alpha1"}
        ],
    }


def kueue_pod_marks(name: str, total: int, *, fast: bool = False) -> Json:
    """Give the metadata of a pod of a Kueue pod group."""
    one_by_one = {"kueue.x-k8s.io/pod-group-fast-admission": "true"} if fast else {}
    return {
        "labels": {
            "kueue.x-k8s.io/queue-name": "team",
            "kueue.x-k8s.io/managed": "true",
            "kueue.x-k8s.io/pod-group-name": name,
        },
        "annotations": {
            "kueue.x-k8s.io/pod-group-total-count": str(total),
            "kueue.x-k8s.io/role-hash": "1a2b3c4d",
            **one_by_one,
        },
    }


def coscheduling_pod_marks(name: str) -> Json:
    """Give the metadata of a pod of a PodGroup of coscheduling."""
    return {"labels": {"scheduling.x-k8s.io/pod-group": name}}


def made_pod(
    name: str, marks: Json, *, gated: bool = True, phase: str = "Pending", **spec: Any
) -> Pod:
    """Make a pod with such metadata, without claims, at our gate or not."""
    gates = [{"name": GATE}] if gated else []
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            **marks,
        },
        "spec": {"containers": [], "schedulingGates": gates, **spec},
        "status": {"phase": phase},
    }
    found = decode_object(raw).value
    assert isinstance(found, Pod)
    return found


_INDEX = "batch.kubernetes.io/job-completion-index"


def view_of_workloads(pods: Iterable[Pod], *owners: Json) -> View:
    """Know pods and what made them, by every row."""
    view = View(frozenset(WorkloadAPI))
    for pod in pods:
        view.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
    for raw in owners:
        owner = read_gang_owner(raw)
        assert owner is not None
        view.apply_owner(owner.key, owner)
    return view


def jobs_pods(*indexes: int, uid: str = "uid-owner", **state: object) -> list[Pod]:
    """Make pods of the Job `j`; with a `state` they have no gate."""
    gated = not state
    return [
        made_pod(
            f"j-{index}-{uid}",
            job_pod_marks("j", index, uid=uid),
            gated=gated,
            phase=str(state.get("phase", "Pending")),
        )
        for index in indexes
    ]


def job(parallelism: int = 4, uid: str = "uid-owner", **status: int) -> Json:
    """Make the Job `j`."""
    spec = {"parallelism": parallelism, "completions": parallelism}
    return owner_object("Job", "j", spec, uid=uid, status=status)
