"""Pods that an object will make are found by shape."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError, UnknownKindError
from contracts.kubernetes.decode import decode_object
from contracts.pods.templates import read_workload, without_templates
from contracts.workload import Workload

TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "containers": [{"name": "main"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    },
}


def decode(kind: str, spec: dict[str, Any], api_version: str = "apps/v1") -> Workload:
    raw = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "w", "namespace": "team-a"},
        "spec": spec,
    }
    value = decode_object(raw).value
    assert isinstance(value, Workload)
    assert value.metadata.name == "w"
    return value


def counts(workload: Workload) -> list[tuple[str, int]]:
    return [(item.name, item.count) for item in workload.templates]


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Deployment", {"replicas": 3}, 3),
        ("Deployment", {}, 1),
        ("StatefulSet", {"replicas": 0}, 0),
        ("ReplicaSet", {"replicas": None}, 1),
        ("Job", {}, 1),
        ("Job", {"parallelism": 4}, 4),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("Job", {"completions": 8}, 1),
    ],
)
def test_one_template_counts_its_pods(
    kind: str, spec: dict[str, Any], count: int
) -> None:
    """Those that run at one time."""
    workload = decode(kind, {**spec, "template": TEMPLATE})

    assert counts(workload) == [("", count)]
    template = workload.templates[0].template
    assert template.metadata.labels == {"app": "x"}
    assert template.spec.resource_claims[0].resource_claim_template_name == "t"


def test_replica_specs_are_named_by_their_key() -> None:
    """In lower case, as the role of the pods."""
    launcher: dict[str, Any] = {"replicas": 1, "template": TEMPLATE}
    worker: dict[str, Any] = {"replicas": 8, "template": TEMPLATE}
    spec = {"mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker}}

    workload = decode("MPIJob", spec, "kubeflow.org/v2beta1")

    assert counts(workload) == [("launcher", 1), ("worker", 8)]


def test_a_group_keeps_the_name_that_it_was_given() -> None:
    """KubeRay writes it on the pods as it is."""
    groups = [{"groupName": "GPU", "replicas": 2, "template": TEMPLATE}]
    workload = decode("RayCluster", {"workerGroupSpecs": groups}, "ray.io/v1")
    assert counts(workload) == [("GPU", 2)]


def test_replicated_jobs_multiply() -> None:
    """Replicas by the pods of each."""
    job = {"parallelism": 4, "completions": 4, "template": TEMPLATE}
    jobs = [
        {"name": "driver", "template": {"spec": {**job, "parallelism": 1}}},
        {"name": "workers", "replicas": 3, "template": {"spec": job}},
    ]

    workload = decode("JobSet", {"replicatedJobs": jobs}, "jobset.x-k8s.io/v1alpha2")

    assert counts(workload) == [("driver", 1), ("workers", 12)]


@pytest.mark.parametrize("kind", ["DaemonSet", "PodTemplate"])
def test_what_does_not_say_how_many_is_refused(kind: str) -> None:
    """A number is not guessed."""
    with pytest.raises(UnknownKindError):
        decode(kind, {"template": TEMPLATE})


@pytest.mark.parametrize("replicas", [-1, "3", True, 1.5, 10**9])
def test_replicas_that_are_no_count_are_refused(replicas: Any) -> None:
    """The error names workload and field."""
    with pytest.raises(DecodeError, match=r"Deployment team-a/w: spec\.replicas"):
        decode("Deployment", {"replicas": replicas, "template": TEMPLATE})


def test_errors_inside_a_template_have_the_whole_path() -> None:
    """From the workload down to the field."""
    broken = {"spec": {"containers": [{"name": 1}]}}

    with pytest.raises(DecodeError) as raised:
        decode("Job", {"template": broken})

    assert raised.value.field == "spec.template.spec.containers[0].name"


def test_templates_beside_one_another_are_all_read() -> None:
    """One under `template` hides none that is elsewhere, and counts for itself."""
    worker = {"replicas": 3, "template": TEMPLATE}
    spec = {"replicas": 2, "template": TEMPLATE, "worker": worker}
    workload = decode("Anything", spec, "example.com/v1")
    assert counts(workload) == [("", 2), ("worker", 3)]
    assert [each.path for each in workload.templates] == [
        "spec.template",
        "spec.worker.template",
    ]


def test_roles_without_a_name_are_told_apart() -> None:
    """Their pods would have the same names otherwise."""
    tasks = [
        {"replicas": 1, "template": TEMPLATE},
        {"replicas": 2, "template": TEMPLATE},
    ]
    workload = decode("Anything", {"tasks": tasks}, "example.com/v1")
    assert counts(workload) == [("", 1), ("1", 2)]


def test_what_is_left_without_templates_is_what_is_not_read() -> None:
    other: dict[str, Any] = {"spec": {"containers": []}}
    spec = {"template": TEMPLATE, "head": {"template": TEMPLATE}, "other": other}
    left = without_templates({"metadata": {"name": "w"}, "spec": spec})
    assert left == {"spec": {"head": {}, "other": other}}


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"size": 3}, {"leader": 2, "worker": 4}),
        ({"size": 1}, {"leader": 2}),
        ({}, {"leader": 2}),
        ({"size": 2, "leaderTemplate": None}, {"leader": 2, "worker": 2}),
    ],
)
def test_a_leader_worker_set_has_groups(spec: Any, counts: dict[str, int]) -> None:
    """Without a template of their own, leaders are as workers are."""
    template: Any = {"spec": {"containers": []}}
    own = {"leaderTemplate": template, "workerTemplate": template, **spec}
    raw = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "spec": {"replicas": 2, "leaderWorkerTemplate": own},
    }
    found = read_workload(raw, "LeaderWorkerSet x", [])
    assert found is not None
    assert {each.name: each.count for each in found.templates} == counts
    leader = "leaderTemplate" if own["leaderTemplate"] else "workerTemplate"
    assert found.templates[0].path == f"spec.leaderWorkerTemplate.{leader}"
    assert without_templates(raw)["spec"]["leaderWorkerTemplate"].keys() <= {
        "size",
        "leaderTemplate",
    }


@pytest.mark.parametrize(
    ("spec", "executors"),
    [
        ({}, 1),
        ({"executor": {"instances": 3}}, 3),
        # It begins with the most of what is said.
        (
            {"dynamicAllocation": {"enabled": True, "initialExecutors": 2}},
            2,
        ),
        (
            {
                "executor": {"instances": 1},
                "dynamicAllocation": {"enabled": True, "minExecutors": 4},
            },
            4,
        ),
        ({"dynamicAllocation": {"enabled": False, "minExecutors": 4}}, 1),
    ],
)
def test_a_spark_application_has_a_driver_and_executors(
    spec: dict[str, Any], executors: int
) -> None:
    template: dict[str, Any] = {"template": {"spec": {"containers": []}}}
    found = decode(
        "SparkApplication",
        {
            **spec,
            "driver": template,
            "executor": {**template, **spec.get("executor", {})},
        },
        "sparkoperator.k8s.io/v1beta2",
    )
    assert {each.name: each.count for each in found.templates} == {
        "driver": 1,
        "executor": executors,
    }
    assert all(each.is_counted for each in found.templates)
