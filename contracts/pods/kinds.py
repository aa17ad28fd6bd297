"""The kinds of workload that are known: one table of what is true of each.

Which gang a pod of a kind belongs to is read in `membership.py`, how many pods there
are in `gang_owners.py`; docs/workloads.md is the same table for people. Pure.

Source: as docs/workloads.md names the projects and their versions.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class HowDecided(StrEnum):
    """How the pods of a kind are decided."""

    TOGETHER = "together"
    """They are a gang, or several."""
    ALONE = "alone"
    """Each by itself, and nobody minds."""
    ALONE_AS_TOLD = "alone, as their author is told"
    AS_MADE = "as what it makes"
    """It makes objects of other kinds, which make the pods."""


class WorkloadKind(Struct, frozen=True):
    """A kind of workload."""

    kind: str
    group: str
    decided: HowDecided = HowDecided.TOGETHER
    versions: tuple[str, ...] = ()
    """Versions whose fields are known; none: any."""
    is_one_unless_said: bool = True
    """True if there is one pod of a role where no number is written."""
    why_alone: str = ""
    """Why its pods are decided alone, where that may surprise."""
    label: str = ""
    """Label of its pods that names it, where another object is their controller."""


_TOGETHER, _ALONE, _AS_MADE = HowDecided.TOGETHER, HowDecided.ALONE, HowDecided.AS_MADE
_OF_VOLCANO = "batch.volcano.sh"
_OF_RAY, _OF_SPARK = "ray.io", "sparkoperator.k8s.io"
_OF_KUBEFLOW, _OF_TRAINER = "kubeflow.org", "trainer.kubeflow.org"
_V1 = ("v1",)
_KUBEFLOW = ("v1", "v2beta1")
_RAY = ("v1", "v1alpha1")
_SPARK = "a Spark application works with the executors that it has"
_ARGO = "a workflow makes a pod for each of its steps, when its turn comes"

KINDS = (
    # Kubernetes.
    WorkloadKind("Job", "batch", _TOGETHER, _V1),
    WorkloadKind("CronJob", "batch", _AS_MADE, _V1),
    WorkloadKind("StatefulSet", "apps", _TOGETHER, _V1),
    WorkloadKind("Deployment", "apps", _ALONE, _V1),
    WorkloadKind("ReplicaSet", "apps", _ALONE, _V1),
    WorkloadKind("DaemonSet", "apps", _ALONE, _V1, is_one_unless_said=False),
    WorkloadKind("ReplicationController", "", _ALONE, _V1),
    WorkloadKind("Node", "", _ALONE, _V1, is_one_unless_said=False),
    WorkloadKind(
        "JobSet",
        "jobset.x-k8s.io",
        _TOGETHER,
        ("v1alpha2",),
        label="jobset.sigs.k8s.io/jobset-name",
    ),
    WorkloadKind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        is_one_unless_said=False,
        label="leaderworkerset.sigs.k8s.io/name",
    ),
    WorkloadKind(
        "DisaggregatedSet",
        "disaggregatedset.x-k8s.io",
        _AS_MADE,
        is_one_unless_said=False,
        label="disaggregatedset.x-k8s.io/name",
    ),
    # Kubeflow.
    WorkloadKind("JAXJob", _OF_KUBEFLOW, _TOGETHER, _KUBEFLOW),
    WorkloadKind(
        "MPIJob",
        _OF_KUBEFLOW,
        _TOGETHER,
        _KUBEFLOW,
        label="training.kubeflow.org/job-name",
    ),
    WorkloadKind("MXJob", _OF_KUBEFLOW, HowDecided.ALONE_AS_TOLD, _KUBEFLOW),
    WorkloadKind("PaddleJob", _OF_KUBEFLOW, _TOGETHER, _KUBEFLOW),
    WorkloadKind("PyTorchJob", _OF_KUBEFLOW, _TOGETHER, _KUBEFLOW),
    WorkloadKind("TFJob", _OF_KUBEFLOW, _TOGETHER, _KUBEFLOW),
    WorkloadKind("XGBoostJob", _OF_KUBEFLOW, _TOGETHER, _KUBEFLOW),
    WorkloadKind("TrainJob", _OF_TRAINER, _AS_MADE, is_one_unless_said=False),
    # Ray.
    WorkloadKind("RayCluster", _OF_RAY, _TOGETHER, _RAY),
    WorkloadKind("RayJob", _OF_RAY, _AS_MADE, _RAY),
    WorkloadKind("RayService", _OF_RAY, _AS_MADE, _RAY),
    WorkloadKind("RayCronJob", _OF_RAY, _AS_MADE, _RAY, is_one_unless_said=False),
    # Others.
    WorkloadKind("Job", _OF_VOLCANO),
    WorkloadKind("AppWrapper", "workload.codeflare.dev"),
    WorkloadKind(
        "SparkApplication",
        _OF_SPARK,
        HowDecided.ALONE_AS_TOLD,
        why_alone=_SPARK,
        label="sparkoperator.k8s.io/app-name",
    ),
    WorkloadKind("ScheduledSparkApplication", _OF_SPARK, _AS_MADE),
    WorkloadKind(
        "Pod", "", HowDecided.ALONE_AS_TOLD, is_one_unless_said=False, why_alone=_SPARK
    ),
    WorkloadKind(
        "Workflow",
        "argoproj.io",
        HowDecided.ALONE_AS_TOLD,
        is_one_unless_said=False,
        why_alone=_ARGO,
    ),
)
"""A Pod is the maker of others where it is the driver of a Spark application."""
_BY_NAME = {(each.group, each.kind): each for each in KINDS}


def find_kind(api_version: str, kind: str) -> WorkloadKind | None:
    """Return what is known of a kind; None: nothing."""
    return _BY_NAME.get((group_of(api_version), kind))


def group_of(api_version: str) -> str:
    """Return the API group of an `apiVersion`; empty: Kubernetes' first one."""
    return api_version.rpartition("/")[0]
