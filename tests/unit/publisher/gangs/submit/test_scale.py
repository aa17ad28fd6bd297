"""Pods say one size, and what makes them is scaled to another."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.names import GANG, GANG_SIZE
from contracts.workload import Pod
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.scale import find_mismatch
from tests.builders.gangs import gang, member
from tests.builders.plans import context_about
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    Json,
    controlled_by,
    job,
    jobs_pods,
    made_pod,
    owner_object,
    view_of_workloads,
)

PARALLEL = {"podManagementPolicy": "Parallel"}


def declared(size: str, owner: Json, count: int = 1) -> list[Pod]:
    """Make pods of a gang that say a size, of the revision `5d8`."""
    marks: dict[str, Any] = {
        "labels": {GANG: "g", "pod-template-hash": "5d8"},
        "annotations": {GANG_SIZE: size},
        "ownerReferences": [owner],
    }
    return [made_pod(f"{owner['name']}-{number}", marks) for number in range(count)]


def scaled(kind: str, replicas: int, **spec: Any) -> Json:
    spec = {"replicas": replicas, **spec}
    return {**owner_object("StatefulSet", "serve", spec), "kind": kind}


def said(pods: list[Pod], *owners: Json) -> str:
    view = view_of_workloads(pods, *owners)
    found = find_mismatch(pods[:1], context_about(view, pods[0]))
    return "" if found is None else found.message


def told(pods: list[Pod], *owners: Json) -> list[str]:
    """What their author is told."""
    view = view_of_workloads(pods, *owners)
    reports = plan_gang(context_about(view, pods[0])).reports
    return [f"{each.reason}: {each.message}" for each in reports if each.reason]


@pytest.mark.parametrize(
    ("size", "replicas", "message"),
    [
        ("4", 6, f"annotation {GANG_SIZE} says 4, StatefulSet serve has replicas 6"),
        ("4", 2, f"annotation {GANG_SIZE} says 4, StatefulSet serve has replicas 2"),
        ("4", 4, ""),
        ("many", 6, ""),
        ("9" * 5000, 6, ""),
    ],
)
def test_both_numbers_are_named(size: str, replicas: int, message: str) -> None:
    pods = declared(size, controlled_by("StatefulSet", "serve"))
    assert said(pods, scaled("StatefulSet", replicas, **PARALLEL)) == message


def test_a_deployment_is_known_by_the_names_of_its_replica_sets() -> None:
    """Each of which has a part of the pods while it rolls out."""
    owner = {**controlled_by("StatefulSet", "serve-5d8"), "kind": "ReplicaSet"}
    pods = declared("4", owner)
    deployment = scaled("Deployment", 6)
    assert said(pods, deployment).endswith("Deployment serve has replicas 6")
    assert said(pods) == ""


def test_a_job_is_meant_as_it_was_written() -> None:
    """However many of its pods have ended."""
    (pod,) = jobs_pods(3)
    pod.metadata.annotations[GANG_SIZE] = "4"
    assert said([pod], job(4, succeeded=3)) == ""
    assert said([pod], job(6)).endswith("Job j has parallelism 6")
    few = owner_object("Job", "j", {"parallelism": 8, "completions": 2})
    assert said([pod], few).endswith("Job j has completions 2")


def test_a_gang_of_several_makers_is_not_compared() -> None:
    """Nor one whose maker another object makes, beside others."""
    one = declared("4", controlled_by("StatefulSet", "serve"))
    two = declared("4", controlled_by("Job", "j"))
    owner = scaled("StatefulSet", 2, **PARALLEL)
    assert said([*one, *two], owner, job(2)) == ""
    owner["metadata"]["ownerReferences"] = [controlled_by("JobSet", "above")]
    assert said(one, owner) == ""


def test_a_gang_object_counts_instead_of_the_annotation() -> None:
    pods = declared("4", controlled_by("StatefulSet", "serve"))
    view = view_of_workloads(pods, scaled("StatefulSet", 6, **PARALLEL))
    view.apply_gang(f"{NAMESPACE}/g", gang(member(), name="g"))
    assert find_mismatch(pods, context_about(view, pods[0])) is None


def test_a_gang_that_is_never_whole_is_told_why() -> None:
    pods = declared("4", controlled_by("StatefulSet", "serve"), 2)
    assert told(pods, scaled("StatefulSet", 2, **PARALLEL)) == [
        (
            f"PodsMissing: 2 of 4 pods are there (annotation {GANG_SIZE} says 4, "
            "StatefulSet serve has replicas 2)"
        )
    ]
    (text,) = told(pods, scaled("StatefulSet", 2))
    assert "has replicas 2; StatefulSet serve: it creates a pod only once" in text


def test_a_gang_that_begins_with_fewer_is_told_so() -> None:
    pods = declared("4", controlled_by("StatefulSet", "serve"), 4)
    (text,) = told(pods, scaled("StatefulSet", 6, **PARALLEL))
    assert text == (
        f"SizeDiffers: annotation {GANG_SIZE} says 4, StatefulSet serve has replicas "
        "6; the gang begins with the smaller number, and other pods join it"
    )
    assert told(pods, scaled("StatefulSet", 4, **PARALLEL)) == []
