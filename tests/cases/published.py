"""Published shapes of workload, rebuilt, and the gangs that they are.

Each is an object as its project's examples have it; what it is was written by hand: by
gang the members, each with its pods and with how many are enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contracts.gang import Gang
from contracts.names import GATE

Json = dict[str, Any]
Gangs = dict[str, list[tuple[str, int, int]]]
TEMPLATE: Json = {
    "spec": {
        "schedulingGates": [{"name": GATE}],
        "containers": [
            {
                "name": "node",
                "image": "registry.invalid/none",
                "resources": {"claims": [{"name": "gpus"}]},
            }
        ],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "one"}],
        "restartPolicy": "Never",
    }
}
PLAIN: Json = {
    "spec": {"containers": [{"name": "head", "image": "registry.invalid/none"}]}
}


def _object(api_version: str, kind: str, spec: Json, name: str = "x") -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def _of(count: int) -> Json:
    return {"replicas": count, "template": TEMPLATE}


def _serving(count: int) -> Json:
    """Describe pods that Kubernetes starts again, which it finds by a label."""
    labels = {"app": "x"}
    spec = {**TEMPLATE["spec"], "restartPolicy": "Always"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "replicas": count,
        "selector": {"matchLabels": labels},
        "template": template,
    }


def _kubeflow(kind: str, field: str, **more: Any) -> Json:
    specs = {"Master": _of(1), "Worker": _of(3)}
    return _object("kubeflow.org/v1", kind, {field: specs, **more})


MASTER_AND_WORKERS: Gangs = {"x": [("master", 1, 1), ("worker", 3, 3)]}
RAY: Json = {
    "headGroupSpec": {"template": PLAIN},
    "workerGroupSpecs": [{"groupName": "gpu", **_of(2)}],
}
LEADERS: Json = {
    "replicas": 2,
    "leaderWorkerTemplate": {"size": 3, "workerTemplate": TEMPLATE},
}
GROUPS: Gangs = {
    f"x-{group}": [("leader", 1, 1), ("worker", 2, 2)] for group in range(2)
}
SPARK: Json = {
    "driver": {"template": PLAIN},
    "executor": {"instances": 2, "template": TEMPLATE},
}
EXECUTORS: Gangs = {f"-exec-{number}": [("pod", 1, 1)] for number in (1, 2)}
VOLCANO = "batch.volcano.sh/v1alpha1"

SHAPES: dict[str, tuple[list[Json], Gangs]] = {
    "Job": (
        [_object("batch/v1", "Job", {"parallelism": 3, "template": TEMPLATE})],
        {"x": [("pod", 3, 3)]},
    ),
    "CronJob": (
        [
            _object(
                "batch/v1",
                "CronJob",
                {
                    "schedule": "0 0 1 1 *",
                    "jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}},
                },
            )
        ],
        {"x-xxxxx": [("pod", 2, 2)]},
    ),
    "StatefulSet, Parallel": (
        [
            _object(
                "apps/v1",
                "StatefulSet",
                {**_serving(2), "podManagementPolicy": "Parallel", "serviceName": "x"},
            )
        ],
        {"x": [("pod", 2, 2)]},
    ),
    "Deployment": (
        [_object("apps/v1", "Deployment", _serving(2))],
        {f"x-{number}": [("pod", 1, 1)] for number in range(2)},
    ),
    "JobSet": (
        [
            _object(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                {
                    "replicatedJobs": [
                        {
                            "name": "w",
                            "replicas": 2,
                            "template": {
                                "spec": {"parallelism": 2, "completions": 2}
                                | {"template": TEMPLATE}
                            },
                        }
                    ]
                },
            )
        ],
        {"x": [("w", 4, 4)]},
    ),
    "LeaderWorkerSet": (
        [_object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", LEADERS)],
        GROUPS,
    ),
    "LeaderWorkerSet with subgroups": (
        [
            _object(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                {
                    **LEADERS,
                    "leaderWorkerTemplate": {
                        **LEADERS["leaderWorkerTemplate"],
                        "subGroupPolicy": {"subGroupSize": 1},
                    },
                },
            )
        ],
        GROUPS,
    ),
    "DisaggregatedSet": (
        [
            _object(
                "disaggregatedset.x-k8s.io/v1",
                "DisaggregatedSet",
                {
                    "roles": [
                        {"name": "prefill", "spec": LEADERS},
                        {"name": "decode", "spec": {**LEADERS, "replicas": 1}},
                    ]
                },
            )
        ],
        {
            f"x-0-xxxxx-{group}": [("leader", 1, 1), ("worker", 2, 2)]
            for group in ("prefill-0", "prefill-1", "decode-0")
        },
    ),
    "PyTorchJob": (
        [_kubeflow("PyTorchJob", "pytorchReplicaSpecs")],
        MASTER_AND_WORKERS,
    ),
    "TFJob, minAvailable": (
        [
            _kubeflow(
                "TFJob",
                "tfReplicaSpecs",
                runPolicy={"schedulingPolicy": {"minAvailable": 3}},
            )
        ],
        {"x": [("master", 1, 1), ("worker", 3, 2)]},
    ),
    "XGBoostJob": ([_kubeflow("XGBoostJob", "xgbReplicaSpecs")], MASTER_AND_WORKERS),
    "JAXJob": ([_kubeflow("JAXJob", "jaxReplicaSpecs")], MASTER_AND_WORKERS),
    "PaddleJob": ([_kubeflow("PaddleJob", "paddleReplicaSpecs")], MASTER_AND_WORKERS),
    "MPIJob of v1": ([_kubeflow("MPIJob", "mpiReplicaSpecs")], MASTER_AND_WORKERS),
    "MPIJob of v2beta1": (
        [
            _object(
                "kubeflow.org/v2beta1",
                "MPIJob",
                {"mpiReplicaSpecs": {"Launcher": _of(1), "Worker": _of(2)}},
            )
        ],
        {"x": [("launcher", 1, 1), ("worker", 2, 2)]},
    ),
    "TrainJob": (
        [
            _object(
                "trainer.kubeflow.org/v1alpha1",
                "ClusterTrainingRuntime",
                {
                    "template": {
                        "spec": {
                            "replicatedJobs": [
                                {
                                    "name": "node",
                                    "template": {"spec": {"template": TEMPLATE}},
                                }
                            ]
                        }
                    }
                },
                "torch",
            ),
            _object(
                "trainer.kubeflow.org/v1alpha1",
                "TrainJob",
                {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 3}},
            ),
        ],
        {"x": [("node", 3, 3)]},
    ),
    "Volcano Job": (
        [
            _object(
                VOLCANO,
                "Job",
                {"minAvailable": 3, "tasks": [{"name": "w", **_of(3)}]},
            )
        ],
        {"x": [("w", 3, 3)]},
    ),
    "Volcano Job, fewer are enough": (
        [
            _object(
                VOLCANO,
                "Job",
                {
                    "minAvailable": 3,
                    "tasks": [{"name": "ps", **_of(1)}, {"name": "w", **_of(4)}],
                },
            )
        ],
        {"x": [("ps", 1, 1), ("w", 4, 2)]},
    ),
    "Volcano Job, minAvailable of tasks": (
        [
            _object(
                VOLCANO,
                "Job",
                {
                    "tasks": [
                        {"name": "ps", **_of(2), "minAvailable": 1},
                        {"name": "w", **_of(4), "minAvailable": 3},
                    ]
                },
            )
        ],
        {"x": [("ps", 2, 1), ("w", 4, 3)]},
    ),
    "Volcano Job without names of tasks": (
        [_object(VOLCANO, "Job", {"tasks": [_of(1), _of(3)]})],
        {"x": [("default0", 1, 1), ("default1", 3, 3)]},
    ),
    "AppWrapper": (
        [
            _object(
                "workload.codeflare.dev/v1beta2",
                "AppWrapper",
                {
                    "components": [
                        {
                            "template": _object(
                                "batch/v1",
                                "Job",
                                {"parallelism": 2, "template": TEMPLATE},
                                "in",
                            )
                        }
                    ]
                },
            )
        ],
        {"x": [("pod", 2, 2)]},
    ),
    "RayCluster": ([_object("ray.io/v1", "RayCluster", RAY)], {"x": [("gpu", 2, 2)]}),
    "RayCluster that scales": (
        [_object("ray.io/v1", "RayCluster", {**RAY, "enableInTreeAutoscaling": True})],
        {"x": [("gpu", 2, 1)]},
    ),
    "RayJob": (
        [_object("ray.io/v1", "RayJob", {"rayClusterSpec": RAY})],
        {"x-xxxxx": [("gpu", 2, 2)]},
    ),
    "RayService": (
        [_object("ray.io/v1", "RayService", {"rayClusterConfig": RAY})],
        {"x-xxxxx": [("gpu", 2, 2)]},
    ),
    "RayCronJob": (
        [_object("ray.io/v1", "RayCronJob", {"jobTemplate": {"rayClusterSpec": RAY}})],
        {"x-xxxxx-xxxxx": [("gpu", 2, 2)]},
    ),
    "SparkApplication": (
        [_object("sparkoperator.k8s.io/v1beta2", "SparkApplication", SPARK)],
        {f"x{name}": members for name, members in EXECUTORS.items()},
    ),
    "ScheduledSparkApplication": (
        [
            _object(
                "sparkoperator.k8s.io/v1beta2",
                "ScheduledSparkApplication",
                {"template": SPARK},
            )
        ],
        {f"x-xxxxx{name}": members for name, members in EXECUTORS.items()},
    ),
}


def list_gangs(gangs: Iterable[Gang]) -> Gangs:
    """Describe gangs as the table does; every member must be there once."""
    found: Gangs = {}
    for gang in gangs:
        assert gang.metadata.name not in found
        members = [(m.name, m.count, m.least) for m in gang.spec.members]
        found[gang.metadata.name] = sorted(members)
    return found
