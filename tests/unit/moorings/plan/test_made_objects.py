"""What makes no pods itself is planned by what it makes."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.workload import ReplicatedPodTemplate, Workload
from moorings.plan.made_objects import list_runtimes, with_made_object
from moorings.plan.objects import PlanObject
from moorings.plan.reading import Reader

Json = dict[str, Any]
POD: Json = {"spec": {"containers": [{"name": "node"}, {"name": "aside"}]}}
GROUPS: Json = {
    "headGroupSpec": {"template": POD},
    "workerGroupSpecs": [{"groupName": "small", "replicas": 2, "template": POD}],
}
RAY, TRAINER = "ray.io/v1", "trainer.kubeflow.org/v1alpha1"


def read(api_version: str, kind: str, spec: Json, name: str = "train") -> PlanObject:
    metadata = {"name": name, "namespace": "team-a"}
    raw = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    (found,) = Reader(print).read([("x", raw)])
    return found


def templates(entry: PlanObject) -> tuple[ReplicatedPodTemplate, ...]:
    assert isinstance(entry.decoded.value, Workload)
    return entry.decoded.value.templates


def counts(entry: PlanObject) -> dict[str, int]:
    return {each.name: each.count for each in templates(entry)}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("RayJob", {"rayClusterSpec": GROUPS}),
        ("RayService", {"rayClusterConfig": GROUPS}),
        ("RayCronJob", {"jobTemplate": {"rayClusterSpec": GROUPS}}),
    ],
)
def test_kinds_of_ray_make_a_cluster(kind: str, spec: Json) -> None:
    made = with_made_object(read(RAY, kind, spec))
    meta = made.decoded.value.metadata
    assert (made.decoded.kind, meta.name) == ("RayCluster", "train-xxxxx")
    assert (meta.controller.kind, meta.controller.name) == (kind, "train")
    assert counts(made) == {"headgroupspec": 1, "small": 2}


def test_what_makes_its_pods_itself_stays() -> None:
    job = read("batch/v1", "Job", {"template": POD})
    assert with_made_object(job) is job


def runtime(kind: str = "ClusterTrainingRuntime", **spec: Any) -> PlanObject:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}
    one = {"spec": {"template": POD}}
    jobs = [
        {"name": "first", "template": {**one, "metadata": {"labels": labels}}},
        {"name": "node", "template": one},
    ]
    template = {"spec": {"replicatedJobs": jobs}}
    return read(TRAINER, kind, {"template": template, **spec}, name="torch")


@pytest.mark.parametrize(
    ("policy", "trainer", "nodes"),
    [({}, {}, 1), ({"numNodes": 3}, {}, 3), ({"numNodes": 3}, {"numNodes": 2}, 2)],
)
def test_a_train_job_makes_the_job_set_of_its_runtime(
    policy: Json, trainer: Json, nodes: int
) -> None:
    job = read(
        TRAINER, "TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": trainer}
    )
    runtimes = list_runtimes([runtime(mlPolicy=policy), job])
    made = with_made_object(job, runtimes)
    assert (made.decoded.kind, made.decoded.value.metadata.name) == ("JobSet", "train")
    assert counts(made) == {"first": 1, "node": nodes}
    assert with_made_object(job) is job


def test_a_runtime_of_a_namespace_serves_its_own() -> None:
    reference = {"name": "torch", "kind": "TrainingRuntime"}
    job = read(TRAINER, "TrainJob", {"runtimeRef": reference})
    found = list_runtimes([runtime("TrainingRuntime")])
    assert counts(with_made_object(job, found)) == {"first": 1, "node": 1}
    with pytest.raises(DecodeError, match="TrainingRuntime team-a/torch is not there"):
        with_made_object(job, list_runtimes([runtime()]))


def test_resources_of_a_train_job_are_of_the_container_that_trains() -> None:
    asked = {"requests": {"cpu": "2"}}
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"resourcesPerNode": asked}}
    job = read(TRAINER, "TrainJob", spec)
    made = with_made_object(job, list_runtimes([runtime()]))
    (_, node) = templates(made)
    (train, aside) = node.template.spec.containers
    assert train.resources.requests["cpu"].text == "2"
    assert not aside.resources.requests


def test_what_changes_the_pods_of_a_train_job_is_not_passed_over() -> None:
    spec = {"runtimeRef": {"name": "torch"}, "podTemplateOverrides": [{}]}
    job = read(TRAINER, "TrainJob", spec)
    with pytest.raises(DecodeError, match="podTemplateOverrides"):
        with_made_object(job, list_runtimes([runtime()]))
