"""Workloads make their pods once: those that are there are not made again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from contracts.meta import ObjectMeta
from contracts.pods.gang_owners import read_gang_owner
from contracts.workload import Pod, PodTemplate, ReplicatedPodTemplate, Workload
from moorings.plan.replicas import find_makers, make_replicas
from tests import builders
from tests.builders.inputs import entry, written_job, written_pod


def workload(kind: str, name: str, owner: tuple[str, str] | None = None) -> Workload:
    """Make a workload of two pods, owned by another."""
    raw = {**written_job(name, 2), "kind": kind}
    if owner is not None:
        raw["metadata"]["ownerReferences"] = [owned_by(*owner)]
    return cast("Workload", entry(raw).decoded.value)


def owned_by(kind: str, name: str) -> dict[str, Any]:
    """Refer to a controller."""
    return {"kind": kind, "name": name, "uid": "u", "controller": True}


def pod(owner: tuple[str, str] | None, **labels: str) -> Pod:
    """Make a pod of a controller."""
    metadata: dict[str, Any] = {"labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [owned_by(*owner)]
    return cast("Pod", entry(written_pod("p", metadata=metadata)).decoded.value)


def makers(*workloads: Workload, pods: tuple[Pod, ...] = ()) -> list[str]:
    """Name the workloads that make pods."""
    return [found.metadata.name for found in find_makers(workloads, pods)]


def test_each_replica_of_a_workload_is_a_pod_of_it() -> None:
    """Named after workload and role, and owned as its controller would have it."""
    spec = builders.pod("x", templates={"gpus": "t"}).spec
    template = PodTemplate(spec=spec)
    made = Workload(
        api_version="jobset.x-k8s.io/v1alpha2",
        kind="JobSet",
        metadata=ObjectMeta(name="train", namespace="team-b"),
        templates=(
            ReplicatedPodTemplate(name="driver", template=template),
            ReplicatedPodTemplate(count=2, template=template),
        ),
    )
    replicas = list(make_replicas(made, {}, None))
    assert [each.metadata.name for each in replicas] == [
        "train-driver-0",
        "train-0",
        "train-1",
    ]
    assert {each.metadata.namespace for each in replicas} == {"team-b"}
    owners = [each.metadata.owner_references[0] for each in replicas]
    assert [(owner.kind, owner.name) for owner in owners] == [
        ("Job", "train-driver"),
        ("Job", "train-"),
        ("Job", "train-"),
    ]
    (attempt,) = {
        each.metadata.labels["jobset.sigs.k8s.io/restart-attempt"] for each in replicas
    }
    assert attempt == "0"


def test_a_workload_whose_pods_are_there_makes_none() -> None:
    job, other = workload("Job", "a"), workload("Job", "b")
    assert makers(job, other) == ["a", "b"]
    assert makers(job, other, pods=(pod(("Job", "a")),)) == ["b"]
    assert makers(job, pods=(pod(None), pod(("StatefulSet", "a")))) == ["a"]


def test_what_another_object_makes_is_not_made_beside_it() -> None:
    """A ReplicaSet of a Deployment, whose pods name the ReplicaSet alone."""
    deployment = workload("Deployment", "web")
    replica_set = workload("ReplicaSet", "web-7f2c", ("Deployment", "web"))
    assert makers(deployment, replica_set) == ["web"]
    of_set = pod(("ReplicaSet", "web-7f2c"))
    assert makers(deployment, replica_set, pods=(of_set,)) == []
    by_hash = pod(("ReplicaSet", "web-7f2c"), **{"pod-template-hash": "7f2c"})
    assert makers(deployment, pods=(by_hash,)) == []


def test_pods_of_an_operator_name_it_by_label() -> None:
    job = workload("MPIJob", "nccl")
    launcher = pod(
        ("Job", "nccl-launcher"), **{"training.kubeflow.org/job-name": "nccl"}
    )
    assert makers(job, pods=(launcher,)) == []


def test_owners_that_lead_back_make_nothing() -> None:
    """Else neither of them would make a pod, and nobody would say so."""
    itself = workload("Deployment", "a", ("Deployment", "a"))
    assert makers(itself) == ["a"]
    one = workload("Deployment", "a", ("Deployment", "b"))
    two = workload("Deployment", "b", ("Deployment", "a"))
    third = workload("ReplicaSet", "c", ("Deployment", "a"))
    assert makers(one, two, third) == ["a", "b"]


def test_a_group_of_ray_is_whole_by_the_name_it_was_given() -> None:
    """Its owner and its pods say the same; names of pods are in lower case."""
    template = {"spec": {"containers": [{"name": "c"}]}}
    raw = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "ray"},
        "spec": {
            "workerGroupSpecs": [
                {"groupName": "GPU", "minReplicas": 2, "template": template}
            ]
        },
    }
    made = cast("Workload", entry(raw).decoded.value)
    pods = list(make_replicas(made, raw, read_gang_owner(raw)))
    assert [each.metadata.name for each in pods] == ["ray-gpu-0", "ray-gpu-1"]
    assert {each.metadata.labels["ray.io/group"] for each in pods} == {"GPU"}


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({}, ["llm-0", "llm-1", "llm-0-1", "llm-1-1"]),
        ({"spec": {"startupPolicy": "LeaderReady"}}, ["llm-0", "llm-1"]),
        (
            {
                "metadata": {
                    "annotations": {
                        "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"
                    }
                }
            },
            ["llm-0", "llm-1"],
        ),
    ],
)
def test_workers_that_come_once_their_leader_runs_are_not_there(
    more: dict[str, Any], names: list[str]
) -> None:
    template = {"spec": {"containers": [{"name": "c"}]}}
    raw: dict[str, Any] = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "llm", **more.get("metadata", {})},
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {"size": 2, "workerTemplate": template},
            **more.get("spec", {}),
        },
    }
    made = cast("Workload", entry(raw).decoded.value)
    pods = make_replicas(made, raw, None)
    assert [pod.metadata.name for pod in pods] == names
