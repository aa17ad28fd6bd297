"""One table says of each kind of workload how its pods are decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.meta import OwnerReference
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.kinds import KINDS, HowDecided, WorkloadKind, find_kind
from contracts.pods.membership import (
    WorkloadAPI,
    explain_alone,
    is_told_alone,
    read_membership,
)
from contracts.workload import Pod
from tests.builders.workloads import made_pod

PAGE = Path(__file__).parents[4] / "docs" / "workloads.md"
TABLE = [pytest.param(each, id=f"{each.kind}.{each.group}") for each in KINDS]
BY_PODS = ("LeaderWorkerSet",)
"""Their pods say how many they are."""


def versions(kind: WorkloadKind) -> list[str]:
    return [f"{kind.group}/{each}".lstrip("/") for each in kind.versions or ("v1",)]


def pod_of(api_version: str, kind: str) -> Pod:
    owner = {
        "apiVersion": api_version,
        "kind": kind,
        "name": "made",
        "uid": "u",
        "controller": True,
    }
    return made_pod("made-0", {"ownerReferences": [owner]})


@pytest.mark.parametrize("kind", TABLE)
def test_what_is_decided_together_says_how_many_pods_it_has(
    kind: WorkloadKind,
) -> None:
    raw = {"apiVersion": versions(kind)[0], "kind": kind.kind, "metadata": {}}
    owner = read_gang_owner(raw)
    if kind.decided == HowDecided.TOGETHER:
        assert owner is not None or kind.kind in BY_PODS
    else:
        assert owner is None or not owner.is_gang


@pytest.mark.parametrize("kind", TABLE)
def test_pods_that_are_alone_are_told_where_that_may_surprise(
    kind: WorkloadKind,
) -> None:
    pod = pod_of(versions(kind)[0], kind.kind)
    membership = read_membership(pod, tuple(WorkloadAPI))
    is_told = is_told_alone(pod, membership)
    assert is_told == (kind.decided == HowDecided.ALONE_AS_TOLD)
    assert not is_told or membership.is_lone


@pytest.mark.parametrize("kind", TABLE)
def test_the_page_names_every_kind_that_people_write(kind: WorkloadKind) -> None:
    assert kind.kind in PAGE.read_text()


def test_kinds_are_told_apart_by_their_group() -> None:
    volcano, native = (
        find_kind(version, "Job") for version in ("batch.volcano.sh/v1", "batch/v1")
    )
    assert volcano is not None
    assert native is not None
    assert volcano != native
    assert find_kind("example.com/v1", "Job") is None
    assert find_kind("v1", "Pod") is not None


def test_each_kind_is_there_once() -> None:
    assert len({(each.group, each.kind) for each in KINDS}) == len(KINDS)


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        ("example.com/v1", "Foo", "this kind is not one that makes gangs"),
        ("v1", "Pod", "a Spark application works with the executors that it has"),
        ("argoproj.io/v1alpha1", "Workflow", "a workflow makes a pod for each of"),
    ],
)
def test_it_is_said_why_pods_are_alone(api_version: str, kind: str, why: str) -> None:
    found = explain_alone(pod_of(api_version, kind))
    assert found.startswith(why)
    assert found.endswith("the label moorings.dev/gang makes its pods one")


def test_a_lone_pod_of_a_person_is_told_nothing() -> None:
    pod = made_pod("p", {})
    assert pod.metadata.controller == OwnerReference()
    assert not is_told_alone(pod, read_membership(pod))
