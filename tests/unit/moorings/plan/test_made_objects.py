"""What makes no pods itself is planned by what it makes."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.workload import ReplicatedPodTemplate, Workload
from moorings.plan.made_objects import list_made_objects, list_runtimes, make_all
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
    ("kind", "spec", "name"),
    [
        ("RayJob", {"rayClusterSpec": GROUPS}, "train-xxxxx"),
        ("RayService", {"rayClusterConfig": GROUPS}, "train-xxxxx"),
        (
            "RayCronJob",
            {"jobTemplate": {"rayClusterSpec": GROUPS}},
            "train-xxxxx-xxxxx",
        ),
    ],
)
def test_kinds_of_ray_make_a_cluster(kind: str, spec: Json, name: str) -> None:
    (made,) = list_made_objects(read(RAY, kind, spec))
    meta = made.decoded.value.metadata
    assert (made.decoded.kind, meta.name) == ("RayCluster", name)
    assert (meta.controller.kind, meta.controller.name) == (kind, "train")
    assert counts(made) == {"headgroupspec": 1, "small": 2}


def test_what_makes_its_pods_itself_stays() -> None:
    job = read("batch/v1", "Job", {"template": POD})
    assert list_made_objects(job) == (job,)


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
    (made,) = list_made_objects(job, runtimes)
    assert (made.decoded.kind, made.decoded.value.metadata.name) == ("JobSet", "train")
    assert counts(made) == {"first": 1, "node": nodes}
    assert list_made_objects(job) == (job,)


def test_a_runtime_of_a_namespace_serves_its_own() -> None:
    reference = {"name": "torch", "kind": "TrainingRuntime"}
    job = read(TRAINER, "TrainJob", {"runtimeRef": reference})
    found = list_runtimes([runtime("TrainingRuntime")])
    assert counts(*list_made_objects(job, found)) == {"first": 1, "node": 1}
    with pytest.raises(DecodeError, match="TrainingRuntime team-a/torch is not there"):
        list_made_objects(job, list_runtimes([runtime()]))


def test_resources_of_a_train_job_are_of_the_container_that_trains() -> None:
    asked = {"requests": {"cpu": "2"}}
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"resourcesPerNode": asked}}
    job = read(TRAINER, "TrainJob", spec)
    (made,) = list_made_objects(job, list_runtimes([runtime()]))
    (_, node) = templates(made)
    (train, aside) = node.template.spec.containers
    assert train.resources.requests["cpu"].text == "2"
    assert not aside.resources.requests


def test_what_changes_the_pods_of_a_train_job_is_not_passed_over() -> None:
    spec = {"runtimeRef": {"name": "torch"}, "podTemplateOverrides": [{}]}
    job = read(TRAINER, "TrainJob", spec)
    with pytest.raises(DecodeError, match="podTemplateOverrides"):
        list_made_objects(job, list_runtimes([runtime()]))


LEADERS = "leaderworkerset.x-k8s.io/v1"
DISAGGREGATED = "disaggregatedset.x-k8s.io/v1"


def role(name: str, **more: Any) -> Json:
    template = {"size": 2, "workerTemplate": POD}
    spec = {"replicas": 3, "leaderWorkerTemplate": template}
    return {"name": name, "spec": spec, **more}


def test_a_disaggregated_set_makes_one_set_for_each_role_of_each_slice() -> None:
    spec = {"slices": 2, "roles": [role("prefill"), role("decode")]}
    made = list_made_objects(read(DISAGGREGATED, "DisaggregatedSet", spec, "llm"))
    assert [each.decoded.value.metadata.name for each in made] == [
        "llm-0-xxxxx-prefill",
        "llm-1-xxxxx-prefill",
        "llm-0-xxxxx-decode",
        "llm-1-xxxxx-decode",
    ]
    assert {each.decoded.kind for each in made} == {"LeaderWorkerSet"}
    assert counts(made[0]) == {"leader": 3, "worker": 3}
    labels = templates(made[1])[0].template.metadata.labels
    assert labels["disaggregatedset.x-k8s.io/slice"] == "1"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"placementPolicy": {"type": "ExclusiveSlice"}}, "placementPolicy"),
        (
            {"roles": [role("prefill", scaling={"mode": "External"})]},
            r"roles\[0\].scaling.mode",
        ),
    ],
)
def test_what_of_a_disaggregated_set_is_not_read_is_an_error(
    spec: Json, field: str
) -> None:
    with pytest.raises(DecodeError, match=f"spec.{field}"):
        list_made_objects(
            read(DISAGGREGATED, "DisaggregatedSet", {"roles": [role("a")], **spec})
        )


def test_a_scheduled_application_makes_one_of_spark() -> None:
    application = {"driver": {"template": POD}, "executor": {"template": POD}}
    scheduled = read(
        "sparkoperator.k8s.io/v1beta2",
        "ScheduledSparkApplication",
        {"template": {**application, "executor": {"instances": 4, "template": POD}}},
    )
    (made,) = list_made_objects(scheduled)
    assert made.decoded.kind == "SparkApplication"
    assert counts(made) == {"driver": 1, "executor": 4}


def owned(entry: PlanObject, kind: str, name: str) -> PlanObject:
    raw = entry.raw
    owner = {"kind": kind, "name": name, "controller": True}
    metadata = raw["metadata"] | {"ownerReferences": [owner]}
    (found,) = Reader(print).read([("x", {**raw, "metadata": metadata})])
    return found


def test_what_was_made_is_not_made_again() -> None:
    """But what makes objects time after time makes the next ones."""
    job = read(RAY, "RayJob", {"rayClusterSpec": GROUPS})
    cluster = owned(read(RAY, "RayCluster", GROUPS, "train-abcde"), "RayJob", "train")
    names = [e.decoded.value.metadata.name for e in make_all([job, cluster])]
    assert names == ["train-abcde"]
    names = [e.decoded.value.metadata.name for e in make_all([job])]
    assert names == ["train-xxxxx"]
    cron = read("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": POD}}})
    last = owned(read("batch/v1", "Job", {"template": POD}, "j"), "CronJob", "train")
    names = [e.decoded.value.metadata.name for e in make_all([cron, last])]
    assert names == ["train-xxxxx", "j"]
