"""The pods of a gang are all there, by whatever they belong together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from contracts.names import GANG, GANG_SIZE
from contracts.workload import Pod
from publisher.gangs.submit.company import Company
from publisher.gangs.submit.completeness import find_shortage, is_left_alone
from publisher.gangs.submit.split import split_by_run
from publisher.gangs.view import is_gated, is_over
from tests.builders.plans import context_about
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    OWNER_UID,
    Json,
    controlled_by,
    coscheduling_pod_marks,
    job,
    job_pod_marks,
    job_set_pod_marks,
    job_set_spec,
    jobs_pods,
    kubeflow_pod_marks,
    kueue_pod_marks,
    leader_worker_set_pod_marks,
    made_pod,
    mpi_job_pod_marks,
    owner_object,
    pod_group_of_coscheduling,
    ray_cluster_pod_marks,
    replicated_job,
    stateful_set_pod_marks,
    view_of_workloads,
)


def told(pods: Iterable[Pod], *owners: Json) -> str:
    """What is said of the waiting ones; empty: they are a whole gang."""
    everybody = list(pods)
    view = view_of_workloads(everybody, *owners)
    waiting = [pod for pod in everybody if is_gated(pod) and not is_over(pod)]
    found = find_shortage(waiting, context_about(view, waiting[0]))
    return "" if found is None else f"{found.reason}: {found.message}"


def opened(pod: Pod) -> Pod:
    """Make a pod one that runs by a gang of ours."""
    pod.metadata.annotations["moorings.dev/gang-uid"] = "some"
    return pod


def test_a_job_is_whole_with_all_that_it_runs_at_once() -> None:
    assert told(jobs_pods(0, 1, 2, 3), job()) == ""
    assert told(jobs_pods(0, 1), job()) == "PodsMissing: 2 of 4 pods are there"


def test_pods_whose_job_is_not_seen_wait() -> None:
    """Never for a number that is made up; nor for that of a Job of the same name."""
    for owners in ((), (job(uid="uid-another"),)):
        words = told(jobs_pods(0), *owners)
        assert words.startswith("GangSizeUnknown: the pods belong together by Job")
        assert f"Job {NAMESPACE}/j" in words


def test_what_has_succeeded_is_not_waited_for() -> None:
    """A Job that was suspended makes only the rest of its pods anew: all of it."""
    done = jobs_pods(0, 1, phase="Succeeded")
    assert told([*done, *jobs_pods(2)], job(succeeded=2)) == (
        "PodsMissing: 1 of 2 pods are there"
    )
    assert told([*done, *jobs_pods(2, 3)], job(succeeded=2)) == ""


def test_a_pod_replaces_another_while_the_rest_run() -> None:
    running = [opened(pod) for pod in jobs_pods(0, 1, 2, phase="Running")]
    assert told([*running, *jobs_pods(3)], job()) == ""


def test_pods_that_only_wait_make_nobody_whole() -> None:
    """Three of a submission that is being cancelled, and the one that is new."""
    pods = jobs_pods(0, 1, 2, 3)
    view = view_of_workloads(pods, job())
    context = context_about(view, pods[0])
    found = find_shortage(pods[3:], context)
    assert found is not None
    assert found.message == "1 of 4 pods are there"
    assert is_left_alone(pods[3:], context, {})
    assert not is_left_alone(pods, context, {})


def test_a_pod_that_was_asked_for_stands_in_for_one_that_failed() -> None:
    """So that the second replacement does not wait for the first."""
    asked, again = jobs_pods(2, 3)
    ran = [opened(pod) for pod in jobs_pods(0, 1, phase="Running")]
    view = view_of_workloads([*ran, asked, again], job())
    context = context_about(view, ran[0])
    company = Company(ran=tuple(ran), stand_ins=(asked,))
    assert find_shortage([again], context, company) is None
    assert find_shortage([again], context) is not None
    assert not is_left_alone([again], context, {})


def test_pods_of_the_job_before_do_not_count() -> None:
    """They go a moment after the next Job of that name has come."""
    before = jobs_pods(0, 1, 2, uid="uid-before")
    now = jobs_pods(3)
    view = view_of_workloads([*before, *now], job())
    context = context_about(view, before[0])
    runs = list(split_by_run([*before, *now], context))
    assert [len(run) for run in runs] == [3, 1]
    for run in runs:
        assert find_shortage(run, context) is not None


def test_pods_that_come_one_by_one_are_decided_one_by_one() -> None:
    """An OrderedReady StatefulSet makes the second once the first runs."""
    pods = [made_pod(f"db-{n}", stateful_set_pod_marks("db", n)) for n in range(2)]
    ordered = owner_object("StatefulSet", "db", {"replicas": 3})
    view = view_of_workloads(pods, ordered)
    context = context_about(view, pods[0])
    assert list(split_by_run(pods, context)) == [[pods[0]], [pods[1]]]
    assert told(pods[:1], ordered) == ""
    parallel = {"replicas": 3, "podManagementPolicy": "Parallel"}
    together = owner_object("StatefulSet", "db", parallel)
    assert told(pods, together) == "PodsMissing: 2 of 3 pods are there"


def test_a_gang_that_comes_one_by_one_is_told_what_to_change() -> None:
    marks = stateful_set_pod_marks("db", 0)
    marks |= {"annotations": {GANG_SIZE: "3"}}
    marks["labels"] |= {GANG: "train"}
    ordered = owner_object("StatefulSet", "db", {"replicas": 3})
    words = told([made_pod("db-0", marks)], ordered)
    assert words.startswith("PodsMissing: 1 of 3 pods are there (StatefulSet db: ")
    assert "podManagementPolicy to Parallel" in words


def test_a_job_set_is_whole_with_every_role() -> None:
    spec = job_set_spec(replicated_job("driver"), replicated_job("worker", 2, 1))
    owner = owner_object("JobSet", "set", spec)
    pods = [made_pod(f"w{n}", job_set_pod_marks("set", "worker", n)) for n in range(2)]
    assert told(pods, owner) == "PodsMissing: 0 of 1 pod driver is there"
    driver = job_set_pod_marks("set", "driver")
    assert told([*pods, made_pod("d", driver)], owner) == ""
    assert told([*pods, made_pod("d", driver, gated=False)], owner) == ""


def test_a_pod_whose_gate_was_taken_off_by_hand_is_not_there() -> None:
    """Of its role others wait: they wait for a whole gang, as ever."""
    owner = owner_object("JobSet", "set", job_set_spec(replicated_job("worker", 2)))
    marks = [job_set_pod_marks("set", "worker", n) for n in range(2)]
    pods = [made_pod("w0", marks[0]), made_pod("w1", marks[1], gated=False)]
    words = "(pod w1 had no gate moorings.dev/allocation and does not count)"
    assert told(pods, owner) == f"PodsMissing: 1 of 2 pods worker are there {words}"


def test_what_comes_later_is_not_waited_for() -> None:
    """A TrainJob's JobSet: the nodes come once the initializer is over."""
    spec = job_set_spec(
        replicated_job("dataset-initializer"),
        replicated_job("node", pods=2, after="dataset-initializer"),
    )
    owner = owner_object("JobSet", "train", spec)
    first = made_pod("i", job_set_pod_marks("train", "dataset-initializer"))
    assert told([first], owner) == ""
    nodes = [
        made_pod(f"n{n}", job_set_pod_marks("train", "node", 0, n)) for n in range(2)
    ]
    assert told(nodes, owner) == ""
    assert told(nodes[:1], owner) == "PodsMissing: 1 of 2 pods node are there"


def test_pods_of_another_attempt_are_not_there() -> None:
    owner = owner_object("JobSet", "set", job_set_spec(replicated_job("worker", 2)))
    old = opened(made_pod("w0", job_set_pod_marks("set", "worker"), gated=False))
    new = made_pod("w1", job_set_pod_marks("set", "worker", 1, attempt=1))
    assert told([old, new], owner) == "PodsMissing: 1 of 2 pods worker are there"


def test_a_leader_waits_for_its_workers() -> None:
    """And its author reads why they might not come."""
    pods = [
        made_pod(f"l{n}", leader_worker_set_pod_marks("llm", 0, n, 3)) for n in range(3)
    ]
    assert told(pods) == ""
    words = told(pods[:1])
    assert words.startswith("PodsMissing: 1 of 3 pods are there")
    assert "LeaderCreated" in words
    assert told(pods[:2]) == "PodsMissing: 2 of 3 pods are there"


def test_a_leader_without_a_gate_counts() -> None:
    marks = [leader_worker_set_pod_marks("llm", 0, n, 3) for n in range(3)]
    pods = [made_pod(f"l{n}", mark, gated=n > 0) for n, mark in enumerate(marks)]
    assert told(pods) == ""


def test_a_launcher_counts_with_its_workers() -> None:
    """With a gate or without; not the workers of an MPIJob that had the name."""
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
    owner = owner_object("MPIJob", "pi", {"mpiReplicaSpecs": specs})
    workers = [made_pod(f"w{n}", mpi_job_pod_marks("pi", "worker")) for n in range(2)]
    launcher = made_pod("l", mpi_job_pod_marks("pi", "launcher"), gated=False)
    assert told([*workers, launcher], owner) == ""
    assert told(workers, owner) == "PodsMissing: 0 of 1 pod launcher is there"
    gone = opened(
        made_pod("old", mpi_job_pod_marks("pi", "worker", uid="before"), gated=False)
    )
    assert told([workers[0], launcher, gone], owner) == (
        "PodsMissing: 1 of 2 pods worker are there"
    )


MPI_SPEC = {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 1}}}
NO_LAUNCHER = "PodsMissing: 0 of 1 pod launcher is there"


def launcher(
    at: str = "", going: str = "", phase: str = "Running", *, ours: bool = False
) -> Pod:
    """Make the launcher of an MPIJob, created at some time."""
    times = {"creationTimestamp": at} if at else {}
    times |= {"deletionTimestamp": going} if going else {}
    marks = mpi_job_pod_marks("pi", "launcher", launcher_uid="uid-l") | times
    found = made_pod("l", marks, gated=False, phase=phase)
    return opened(found) if ours else found


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_launcher_older_than_its_mpi_job_is_of_one_before(
    phase: str, *, ours: bool
) -> None:
    """With our gate or without; one of the same second may be its own."""
    worker = made_pod("w", mpi_job_pod_marks("pi", "worker"))
    owner = owner_object("MPIJob", "pi", MPI_SPEC)
    owner["metadata"]["creationTimestamp"] = "2026-11-20T12:00:01Z"
    before = launcher("2026-11-20T12:00:00Z", phase=phase, ours=ours)
    assert told([worker, before], owner) == NO_LAUNCHER
    now = launcher("2026-11-20T12:00:01Z", phase=phase, ours=ours)
    assert told([worker, now], owner) == ""


def test_a_launcher_whose_job_is_another_mpi_jobs_does_not_count() -> None:
    """Nor one whose Job was made anew; however young it is."""
    worker = made_pod("w", mpi_job_pod_marks("pi", "worker"))
    owner = owner_object("MPIJob", "pi", MPI_SPEC)

    def told_with(job_uid: str, mpi_job_uid: str) -> str:
        made_by = owner_object("Job", "pi-launcher", {}, uid=job_uid)
        made_by["metadata"]["ownerReferences"] = [
            controlled_by("MPIJob", "pi", mpi_job_uid)
        ]
        return told([worker, launcher()], owner, made_by)

    assert told_with("uid-l", "uid-owner") == ""
    assert told_with("uid-l", "uid-before") == NO_LAUNCHER
    assert told_with("uid-anew", "uid-owner") == NO_LAUNCHER


@pytest.mark.parametrize("ours", [False, True])
def test_a_launcher_that_is_being_deleted_is_not_there(*, ours: bool) -> None:
    """Though it may have succeeded."""
    worker = made_pod("w", mpi_job_pod_marks("pi", "worker"))
    owner = owner_object("MPIJob", "pi", MPI_SPEC)
    going = launcher(going="2026-11-20T12:00:01Z", phase="Succeeded", ours=ours)
    assert told([worker, going], owner) == NO_LAUNCHER


def test_workers_of_the_mpi_job_before_are_not_decided_with_those_of_now() -> None:
    """They wait a moment longer, each by itself."""
    owner = owner_object("MPIJob", "pi", MPI_SPEC)
    now = made_pod("w", mpi_job_pod_marks("pi", "worker"))
    before = made_pod("old", mpi_job_pod_marks("pi", "worker", uid="uid-before"))
    runs = made_pod("runs", mpi_job_pod_marks("pi", "worker"), gated=False)
    view = view_of_workloads([now, before, opened(runs), launcher()], owner)
    context = context_about(view, now)
    assert list(split_by_run([before, now], context)) == [[before], [now]]
    assert find_shortage([now], context) is None
    found = find_shortage([before], context)
    assert found is not None
    assert found.message == "pod old belongs to an earlier MPIJob pi"


def test_who_made_the_job_of_a_pod_matters_to_no_pod_group() -> None:
    """A PodGroup makes no pods: they are a CronJob's or anybody's, and may be older."""
    marks = job_pod_marks("j")
    marks["labels"] |= coscheduling_pod_marks("c")["labels"]
    pods = [made_pod(f"c{n}", marks) for n in range(2)]
    made_by = job(2)
    cron = controlled_by("Job", "nightly", "uid-cron") | {"kind": "CronJob"}
    made_by["metadata"]["ownerReferences"] = [cron]
    view = view_of_workloads(pods, made_by, pod_group_of_coscheduling("c", 2))
    context = context_about(view, pods[0])
    assert list(split_by_run(pods, context)) == [pods]
    assert find_shortage(pods, context) is None


def test_a_launcher_that_waits_for_its_workers_is_not_waited_for() -> None:
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 1}}
    spec = {"mpiReplicaSpecs": specs, "launcherCreationPolicy": "WaitForWorkersReady"}
    owner = owner_object("MPIJob", "pi", spec)
    assert told([made_pod("w", mpi_job_pod_marks("pi", "worker"))], owner) == ""


def test_a_ray_cluster_is_whole_with_head_and_groups() -> None:
    groups = [{"groupName": "gpu", "replicas": 2, "numOfHosts": 1}]
    owner = owner_object("RayCluster", "ray", {"workerGroupSpecs": groups})
    head = made_pod("h", ray_cluster_pod_marks("ray", "head"), gated=False)
    gpus = [made_pod(f"g{n}", ray_cluster_pod_marks("ray", "gpu")) for n in range(2)]
    assert told([head, *gpus], owner) == ""
    assert told([head, gpus[0]], owner) == "PodsMissing: 1 of 2 pods gpu are there"


def test_kueue_says_the_size_in_each_pod() -> None:
    pods = [made_pod(f"k{n}", kueue_pod_marks("k", 2)) for n in range(2)]
    assert told(pods) == ""
    assert told(pods[:1]) == "PodsMissing: 1 of 2 pods are there"
    other = made_pod("k2", kueue_pod_marks("k", 3))
    assert told([*pods, other]).startswith("GangSizeInvalid: the pods disagree on")


def test_a_pod_group_needs_its_least_number() -> None:
    """More may come."""
    owner = pod_group_of_coscheduling("c", 2)
    pods = [made_pod(f"c{n}", coscheduling_pod_marks("c")) for n in range(3)]
    assert told(pods[:1], owner) == "PodsMissing: 1 of 2 pods are there"
    assert told(pods[:2], owner) == ""
    assert told(pods, owner) == ""


def test_our_annotation_wins_over_what_made_the_pods() -> None:
    marks = job_pod_marks("j", 0)
    marks["annotations"] |= {GANG_SIZE: "2"}
    pods = [made_pod(f"j{n}", marks) for n in range(2)]
    assert told(pods) == ""


@pytest.mark.parametrize(
    ("notes", "hint"),
    [
        ({}, "startupPolicy LeaderReady"),
        (
            {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"},
            "say moorings.dev/topology instead",
        ),
    ],
)
def test_a_leader_whose_workers_come_once_it_runs_is_told(
    notes: dict[str, str], hint: str
) -> None:
    marks = leader_worker_set_pod_marks("llm", 0, 0, 3)
    marks["annotations"] |= notes
    assert hint in told([made_pod("l0", marks)])


@pytest.mark.parametrize(
    ("unmarked", "words"),
    [
        (1, "(pod w-1 had no gate moorings.dev/allocation and does not count)"),
        (2, "(pod w-1 and 1 more had no gate moorings.dev/allocation and do not count"),
    ],
)
def test_pods_that_run_without_our_mark_are_named(unmarked: int, words: str) -> None:
    """Why a replacement waits: nobody decided for the others."""
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 1 + unmarked}}}
    marks = kubeflow_pod_marks("PyTorchJob", "k", "worker", uid=OWNER_UID)
    pods = [made_pod("w-0", marks)]
    pods += [
        made_pod(f"w-{n}", marks, gated=False, phase="Running")
        for n in range(1, 1 + unmarked)
    ]
    found = told(pods, owner_object("PyTorchJob", "k", spec))
    assert found.startswith(f"PodsMissing: 1 of {1 + unmarked} pods worker are there")
    assert words in found
