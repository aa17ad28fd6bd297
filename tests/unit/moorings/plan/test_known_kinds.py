"""Kinds of workload are read in the versions whose fields we know."""

from __future__ import annotations

import pytest

from contracts.errors import DecodeError
from moorings.plan.known_kinds import check_version, is_one_unless_said, makes_no_pods


@pytest.mark.parametrize(
    ("api_version", "kind", "problem"),
    [
        ("batch/v9", "Job", "apiVersion: batch/v9 is not supported; batch/v1 is"),
        ("v2", "ReplicationController", "v2 is not supported; v1 is"),
        ("kubeflow.org/v9", "MPIJob", "kubeflow.org/v1 and kubeflow.org/v2beta1 are"),
        ("batch/v1", "job", "kind: batch/v1 has no kind job; did you mean Job"),
    ],
)
def test_what_a_known_group_does_not_have_is_an_error(
    api_version: str, kind: str, problem: str
) -> None:
    with pytest.raises(DecodeError, match=problem):
        check_version(api_version, kind, "it")


def test_other_groups_have_any_version() -> None:
    check_version("example.com/v9", "Job", "it")
    check_version("batch/v1", "Job", "it")


def test_only_known_kinds_have_one_pod_unless_they_say_more() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job"}
    assert is_one_unless_said(job)
    assert not is_one_unless_said({**job, "apiVersion": "example.com/v1"})


def test_only_known_kinds_make_no_pods() -> None:
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    assert makes_no_pods(workload)
    assert not makes_no_pods({**workload, "apiVersion": "moorings.dev/v1"})
    assert not makes_no_pods({**workload, "kind": "Queue"})
