"""An object that says a gang's size concerns the pods of that gang."""

from __future__ import annotations

from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import OwnerKey
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    controlled_by,
    job,
    jobs_pods,
    made_pod,
    mpi_job_pod_marks,
    owner_object,
    view_of_workloads,
)


def test_a_launchers_job_concerns_the_gang_of_its_mpi_job() -> None:
    """It may come after the launcher, and tells whose that is."""
    view = view_of_workloads([made_pod("w", mpi_job_pod_marks("pi", "worker"))])
    (group,) = view.groups()
    raw = owner_object("Job", "pi-launcher", {})
    raw["metadata"]["ownerReferences"] = [controlled_by("MPIJob", "pi")]
    found = read_gang_owner(raw)
    assert found is not None
    assert view.apply_owner(found.key, found) == {group}


def test_an_owner_that_changes_concerns_its_gang() -> None:
    """And one that says the same again does not."""
    view = view_of_workloads(jobs_pods(0), job())
    (group,) = view.groups()
    key = OwnerKey("Job", NAMESPACE, "j")
    assert view.apply_owner(key, read_gang_owner(job())) == frozenset()
    assert view.apply_owner(key, read_gang_owner(job(8))) == {group}
    assert view.apply_owner(key, None) == {group}
    assert view.apply_owner(key, None) == frozenset()


def test_a_pod_without_a_gate_concerns_the_gang_that_it_belongs_to() -> None:
    """As it comes, and as it goes."""
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 1}}
    owner = owner_object("MPIJob", "pi", {"mpiReplicaSpecs": specs})
    view = view_of_workloads([made_pod("w", mpi_job_pod_marks("pi", "worker"))], owner)
    (group,) = view.groups()
    launcher = made_pod("l", mpi_job_pod_marks("pi", "launcher"), gated=False)
    assert view.apply_pod(f"{NAMESPACE}/l", launcher) == {group}
    assert view.apply_pod(f"{NAMESPACE}/l", None) == {group}
