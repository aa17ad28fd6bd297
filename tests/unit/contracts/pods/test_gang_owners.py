"""How many pods of which roles an object has at one time."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DecodeError
from contracts.gang_rules import GangTopology
from contracts.meta import OwnerReference
from contracts.pods.gang_owners import GangOwner, ScaledNumber, read_gang_owner
from contracts.pods.membership import OwnerKey
from contracts.pods.templates import MAX_REPLICAS
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    OWNER_UID,
    Json,
    controlled_by,
    job_set_spec,
    owner_object,
    pod_group_of_coscheduling,
    replicated_job,
)


def owner(raw: Json) -> GangOwner:
    found = read_gang_owner(raw)
    assert found is not None
    return found


def roles(raw: Json) -> dict[str, int]:
    return {role.name: role.count for role in owner(raw).roles}


@pytest.mark.parametrize(
    ("spec", "status", "count"),
    [
        ({}, {}, 1),
        ({"parallelism": 4, "completions": 4}, {}, 4),
        ({"parallelism": 4, "completions": 3}, {}, 3),
        ({"parallelism": 4, "completions": 8}, {"succeeded": 2}, 4),
        ({"parallelism": 4, "completions": 8}, {"succeeded": 6}, 2),
        ({"parallelism": 4, "completions": 4}, {"succeeded": 4}, 0),
        ({"parallelism": 4, "completions": 4}, {"failedIndexes": "0,2-3"}, 1),
        # A work queue: once one pod has succeeded no new ones are made.
        ({"parallelism": 4}, {}, 4),
        ({"parallelism": 4}, {"succeeded": 1}, 0),
    ],
)
def test_a_job_wants_what_has_not_succeeded(
    spec: Json, status: Json, count: int
) -> None:
    raw = owner_object("Job", "train", spec, status=status)
    assert roles(raw) == {"": count}
    assert owner(raw).key == OwnerKey("Job", NAMESPACE, "train")
    assert not owner(raw).counts_succeeded


@pytest.mark.parametrize(
    ("policy", "is_gang"), [("Parallel", True), ("OrderedReady", False), (None, False)]
)
def test_only_a_parallel_stateful_set_is_a_gang(
    policy: str | None, is_gang: bool
) -> None:
    more = {"podManagementPolicy": policy} if policy else {}
    found = owner(owner_object("StatefulSet", "db", {"replicas": 3, **more}))
    assert found.is_gang == is_gang
    assert found.roles[0].count == 3


def labelled(value: str, spec: Json) -> Json:
    """Make a Job that Kueue is to end after so many seconds."""
    raw = owner_object("Job", "train", spec)
    raw["metadata"]["labels"] = {"kueue.x-k8s.io/max-exec-time-seconds": value}
    return raw


@pytest.mark.parametrize(
    ("raw", "lasts_s"),
    [
        (owner_object("Job", "train", {}), None),
        (owner_object("Job", "train", {"activeDeadlineSeconds": 3600}), 3600),
        (
            labelled("600", {"activeDeadlineSeconds": 3600}),
            600,
        ),
        (
            labelled("soon", {}),
            None,
        ),
        (
            owner_object(
                "PyTorchJob", "train", {"runPolicy": {"activeDeadlineSeconds": 60}}
            ),
            60,
        ),
    ],
)
def test_an_owner_says_after_how_long_its_pods_are_ended(
    raw: Json, lasts_s: int | None
) -> None:
    assert owner(raw).lasts_s == lasts_s


def test_a_job_set_has_a_role_for_each_replicated_job() -> None:
    spec = job_set_spec(replicated_job("driver"), replicated_job("worker", 2, 4))
    assert roles(owner_object("JobSet", "set", spec)) == {"driver": 1, "worker": 8}


def test_jobs_of_a_job_set_may_come_after_others() -> None:
    """By name, or all in order."""
    spec = job_set_spec(replicated_job("init"), replicated_job("node", after="init"))
    found = owner(owner_object("JobSet", "set", spec))
    assert [role.after for role in found.roles] == [(), ("init",)]
    spec = job_set_spec(replicated_job("a"), replicated_job("b"), order="InOrder")
    found = owner(owner_object("JobSet", "set", spec))
    assert [role.after for role in found.roles] == [(), ("a",)]


def test_an_mpi_job_has_a_launcher_and_workers() -> None:
    """The launcher may come last."""
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 3}}
    spec: dict[str, Any] = {"mpiReplicaSpecs": specs}
    assert roles(owner_object("MPIJob", "pi", spec)) == {"launcher": 1, "worker": 3}
    spec |= {"launcherCreationPolicy": "WaitForWorkersReady"}
    launcher, worker = owner(owner_object("MPIJob", "pi", spec)).roles
    assert (launcher.after, worker.after) == (("worker",), ())


def test_an_mpi_job_says_its_age_and_a_job_what_made_it() -> None:
    """By both is told whose a launcher is."""
    found = owner_object("MPIJob", "pi", {})
    assert owner(found).created == ""
    found["metadata"]["creationTimestamp"] = "2026-11-20T12:00:00Z"
    assert owner(found).created == "2026-11-20T12:00:00Z"
    launcher = owner_object("Job", "pi-launcher", {})
    assert owner(launcher).controller == OwnerReference()
    launcher["metadata"]["ownerReferences"] = [controlled_by("MPIJob", "pi")]
    assert owner(launcher).controller.uid == OWNER_UID


def test_a_ray_cluster_has_a_head_and_groups() -> None:
    """Several hosts may be one replica; a group that is suspended has none."""
    groups = [
        {"groupName": "gpu", "replicas": 2, "minReplicas": 1, "numOfHosts": 4},
        {"groupName": "few", "replicas": 1, "minReplicas": 2, "maxReplicas": 5},
        {"groupName": "many", "replicas": 9, "maxReplicas": 5},
        {"groupName": "off", "replicas": 2, "suspend": True},
    ]
    found = owner_object("RayCluster", "ray", {"workerGroupSpecs": groups})
    assert roles(found) == {"head": 1, "gpu": 8, "few": 2, "many": 5, "off": 0}


def test_groups_that_ray_scales_begin_with_their_minimum() -> None:
    """Pod by pod; where a replica has several hosts, with all that are asked for."""
    groups = [
        {"groupName": "gpu", "replicas": 4, "minReplicas": 2},
        {"groupName": "any", "replicas": 3},
        {"groupName": "hosts", "replicas": 4, "minReplicas": 2, "numOfHosts": 2},
        {"groupName": "none", "replicas": 0},
    ]
    spec = {"workerGroupSpecs": groups}
    rigid = owner(owner_object("RayCluster", "ray", spec))
    assert {role.least for role in rigid.roles} == {None}
    scaled = owner(
        owner_object("RayCluster", "ray", {**spec, "enableInTreeAutoscaling": True})
    )
    assert {role.name: role.least for role in scaled.roles} == {
        "head": None,
        "gpu": 2,
        "any": 1,
        "hosts": None,
        "none": None,
    }


def test_a_pod_group_of_coscheduling_says_the_least() -> None:
    found = owner(pod_group_of_coscheduling("c", 5))
    assert (found.minimum, found.key.kind) == (5, "PodGroup.scheduling.x-k8s.io")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_independent_pods_are_no_gang_and_can_be_scaled(kind: str) -> None:
    raw = {**owner_object("StatefulSet", "serve", {"replicas": 3}), "kind": kind}
    found = owner(raw)
    assert not found.is_gang
    assert found.key.kind == kind
    assert found.scale == ScaledNumber(field="replicas", count=3)


def test_other_kinds_say_nothing() -> None:
    assert read_gang_owner({"apiVersion": "apps/v1", "kind": "DaemonSet"}) is None
    assert read_gang_owner({"apiVersion": "example.com/v1", "kind": "Job"}) is None


def test_what_is_no_number_is_named() -> None:
    """So its pods wait, rather than for a wrong number of them."""
    with pytest.raises(DecodeError, match="parallelism"):
        read_gang_owner(owner_object("Job", "train", {"parallelism": "many"}))


@pytest.mark.parametrize(
    "group", [{"minReplicas": 10**9}, {"replicas": 2, "numOfHosts": 10**9}]
)
def test_more_pods_than_any_cluster_holds_are_refused(group: Json) -> None:
    """The template's own replicas do not say it."""
    groups = [{"groupName": "few"}, {"groupName": "gpu", **group}]
    raw = owner_object("RayCluster", "ray", {"workerGroupSpecs": groups})
    with pytest.raises(
        DecodeError, match=rf"ray.*workerGroupSpecs\[1\].*{MAX_REPLICAS}"
    ):
        read_gang_owner(raw)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (owner_object("Job", "train", {"parallelism": 10**9}), "spec"),
        (
            owner_object(
                "JobSet", "train", job_set_spec(replicated_job("a", 10**5, 2))
            ),
            r"spec\.replicatedJobs\[0\]",
        ),
        (
            owner_object(
                "MPIJob", "pi", {"mpiReplicaSpecs": {"Worker": {"replicas": 10**9}}}
            ),
            r"spec\.mpiReplicaSpecs\[worker\]",
        ),
    ],
)
def test_the_field_that_says_too_many_is_named(raw: Json, field: str) -> None:
    with pytest.raises(DecodeError, match=f"{field}: Expected at most"):
        read_gang_owner(raw)


@pytest.mark.parametrize("metadata", [["train"], "train", 7])
def test_metadata_that_is_no_object_is_named(metadata: Any) -> None:
    raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    with pytest.raises(DecodeError, match="metadata: Expected `object`"):
        read_gang_owner(raw)


def native(policy: Json, **spec: Any) -> GangOwner:
    return owner(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "pg", "namespace": NAMESPACE, "uid": "u"},
            "spec": {"schedulingPolicy": policy, **spec},
        }
    )


def test_a_pod_group_of_kubernetes_is_a_gang_by_its_policy() -> None:
    found = native({"gang": {"minCount": 4}}, priority=7)
    assert (found.is_gang, found.minimum, found.priority) == (True, 4, 7)
    assert found.key == OwnerKey("PodGroup", NAMESPACE, "pg")
    assert not native({"basic": {}}).is_gang


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"parentCompositePodGroupName": "p"}, "parentCompositePodGroupName"),
        ({"schedulingConstraints": {}}, ""),
    ],
)
def test_what_of_a_pod_group_is_not_modelled_is_named(spec: Json, field: str) -> None:
    assert native({"gang": {"minCount": 1}}, **spec).not_modelled.endswith(field)


def test_the_topology_of_a_pod_group_is_that_of_its_gang() -> None:
    """All of its pods are in one domain (KEP-5732); without a gang nobody waits."""
    racks = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    found = native({"gang": {"minCount": 1}}, **racks)
    assert found.topology == (GangTopology(key="rack"),)
    assert not found.not_modelled
    loose = native({"basic": {}}, **racks)
    assert loose.not_modelled == "PodGroup pg: spec.schedulingConstraints.topology"


REPLICAS: Json = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}, "PS": {}}


def with_minimum(minimum: int) -> Json:
    return {"runPolicy": {"schedulingPolicy": {"minAvailable": minimum}}}


def volcano(*tasks: tuple[str, int, int | None], minimum: int = 0) -> Json:
    """Make a Job's spec of tasks: name, replicas and `minAvailable`."""
    return {
        **({"minAvailable": minimum} if minimum else {}),
        "tasks": [
            {"name": name, "replicas": replicas, "minAvailable": least}
            for name, replicas, least in tasks
        ],
    }


def test_a_task_of_volcano_may_come_after_others() -> None:
    tasks = [{"name": "ps"}, {"name": "w", "dependsOn": {"name": ["ps"]}}]
    found = owner(owner_object("VolcanoJob", "vj", {"tasks": tasks}))
    assert [role.after for role in found.roles] == [(), ("ps",)]


@pytest.mark.parametrize(
    ("kind", "spec", "expected", "least"),
    [
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": REPLICAS},
            {"master": 1, "worker": 3, "ps": 1},
            {},
        ),
        ("TFJob", {"tfReplicaSpecs": {"Worker": {}}}, {"worker": 1}, {}),
        (
            "TFJob",
            {"tfReplicaSpecs": REPLICAS, **with_minimum(4)},
            {"master": 1, "worker": 3, "ps": 1},
            {"worker": 2},
        ),
        # All of them, or more than there are: every pod is needed.
        (
            "TFJob",
            {"tfReplicaSpecs": {"Worker": {}}, **with_minimum(2)},
            {"worker": 1},
            {},
        ),
        (
            "VolcanoJob",
            {"tasks": [{"name": "ps", "replicas": 2}, {"name": "w"}]},
            {"ps": 2, "w": 1},
            {},
        ),
        (
            "VolcanoJob",
            {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 3}]},
            {"w": 3},
            {"w": 2},
        ),
        # Below the sum of what tasks need, the minimum is about the Job alone.
        (
            "VolcanoJob",
            volcano(("ps", 2, 2), ("w", 5, None), minimum=3),
            {"ps": 2, "w": 5},
            {"w": 1},
        ),
        (
            "VolcanoJob",
            volcano(("ps", 2, 2), ("w", 5, 3)),
            {"ps": 2, "w": 5},
            {"w": 3},
        ),
        (
            "VolcanoJob",
            volcano(("ps", 2, 1), ("w", 5, 1), minimum=4),
            {"ps": 2, "w": 5},
            {"w": 2},
        ),
        (
            "VolcanoJob",
            volcano(("ps", 2, None), ("w", 5, None), minimum=1),
            {"ps": 2, "w": 5},
            {"ps": 1, "w": 1},
        ),
    ],
)
def test_published_jobs_say_how_many_pods_they_have(
    kind: str, spec: Json, expected: Json, least: Json
) -> None:
    raw = owner_object(kind, "train", spec)
    found = owner(raw)
    assert roles(raw) == expected
    assert {r.name: r.least for r in found.roles if r.least is not None} == least
    name = "Job.batch.volcano.sh" if kind == "VolcanoJob" else kind
    assert found.key == OwnerKey(name, NAMESPACE, "train")


POD_TEMPLATE: Json = {"spec": {"containers": []}}
JOB: Json = owner_object("Job", "j", {"parallelism": 3, "template": POD_TEMPLATE})


@pytest.mark.parametrize(
    ("components", "count"),
    [
        ([], 0),
        ([{"template": JOB}], 3),
        ([{"template": JOB, "podSets": [{"replicas": 5}, {}]}], 6),
        ([{"template": {"kind": "Pod", "apiVersion": "v1"}}, {"template": JOB}], 4),
        (
            [
                {
                    "template": {
                        "apiVersion": "a.b/v1",
                        "kind": "Other",
                        "spec": {"replicas": 2, "template": POD_TEMPLATE},
                    }
                }
            ],
            2,
        ),
    ],
)
def test_an_app_wrapper_is_all_of_its_components(
    components: list[Json], count: int
) -> None:
    raw = owner_object("AppWrapper", "train", {"components": components})
    assert roles(raw) == {"": count}
