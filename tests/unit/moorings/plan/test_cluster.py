"""Ordinary objects of a cluster are answered as the publisher would take them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.kubernetes.decode import to_kubernetes
from contracts.meta import ObjectMeta
from contracts.names import ALLOCATE, GANG_SIZE, GANG_UID, GATE, IMMEDIATE
from moorings.plan.cluster import make_cluster
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.plan import Plan
from solver.cel.evaluator import SelectorEvaluator
from tests import builders
from tests.builders.inputs import (
    GATED,
    Json,
    entries,
    generated_claim,
    pod_spec,
    written_job,
    written_node,
    written_pod,
)
from tests.builders.problems import PlainEvaluator

DEVICES = 4
WORLD = (
    builders.device_class(),
    builders.resource_slice(*builders.devices(DEVICES)),
    builders.claim_template(name="one"),
    written_node(builders.NODE),
)


def raw(value: Any) -> Json:
    """Write one of our objects."""
    return cast("Json", to_builtins(to_kubernetes(value)))


def held(name: str, *devices: str) -> Any:
    """Make a claim that holds devices of the one node."""
    results = (builders.result(device, pool=builders.NODE) for device in devices)
    return builders.claim(name=name, allocated=builders.allocation(*results))


def plan(*objects: Any) -> Plan:
    """Plan objects on a node with four devices and eight CPUs."""
    planner = Planner(cast("SelectorEvaluator", PlainEvaluator()))
    found = planner.plan(entries(*WORLD, *objects), PlanOptions())
    assert found.error is None
    return found


def verdicts(found: Plan) -> dict[str, str]:
    """Name each gang's verdict, and the rule that says no."""
    return {
        gang.name: " ".join([gang.verdict, *(str(r.rule) for r in gang.reasons)])
        for gang in found.gangs
    }


# --- members --------------------------------------------------------------------------


def test_a_pod_without_claims_is_a_member_of_its_gang() -> None:
    """A launcher that no node can hold keeps its workers out."""
    gang: Json = {"gang": "train", "size": 3}
    workers = [written_pod(f"w-{n}", template="one", **gang) for n in range(2)]
    fits = plan(*workers, written_pod("launcher", cpu=1, **gang))
    assert verdicts(fits) == {"train": "allocated"}
    assert sorted(pod for each in fits.gangs[0].members for pod in each.pods) == [
        "launcher",
        "w-0",
        "w-1",
    ]
    huge = plan(*workers, written_pod("launcher", cpu=100, **gang))
    assert verdicts(huge) == {"train": "none NodeResourcesInsufficient"}


def test_a_gang_waits_for_its_missing_pods() -> None:
    """As many as its annotation says; without one nobody knows."""
    few = plan(written_job("train", 3, gang="train", size=4, template="one"))
    assert verdicts(few) == {"train": "waits PodsMissing"}
    assert not few.is_yes
    assert not few.has_errors
    assert str(few.gangs[0].reasons[0]) == (
        f"PodsMissing: 3 of 4 pods are there (annotation {GANG_SIZE} says 4, Job "
        "train has parallelism 3)"
    )
    unsaid = plan(written_job("train", 3, gang="train", template="one"))
    assert verdicts(unsaid) == {"train": "waits GangSizeMissing"}
    whole = plan(written_job("train", 4, gang="train", size=4, template="one"))
    assert verdicts(whole) == {"train": "allocated"}
    scaled = plan(written_job("train", 4, gang="train", size=2, template="one"))
    said = f"annotation {GANG_SIZE} says 2, Job train has parallelism 4"
    assert any(said in note for note in scaled.notes)


def test_a_gang_object_and_its_pods_are_one() -> None:
    """Not two that take devices from each other; and they must say the same."""
    member = builders.member(builders.member_claim(template="one", name="gpu"), count=3)
    gang = builders.gang(member, name="train")
    job = written_job("train", 3, gang="train", template="one")
    assert verdicts(plan(gang, job)) == {"train": "allocated"}
    other = written_job("train", 2, gang="train", template="one")
    assert verdicts(plan(gang, other)) == {"train": "waits PodsMissing"}
    strange = written_job("train", 3, gang="train")
    assert verdicts(plan(gang, strange)) == {"train": "waits ClaimsDiffer"}


@pytest.mark.parametrize(
    ("hold", "version", "answer"),
    [
        (False, "", "allocated"),
        (True, "", "allocated"),
        (False, "7", "waits PodsMissing"),
        (True, "7", "allocated"),
    ],
)
def test_a_gang_object_without_pods_is_a_what_if_unless_a_cluster_has_it(
    hold: bool, version: str, answer: str
) -> None:
    """There it waits for its pods, or holds its devices."""
    gang = raw(builders.gang(builders.member(count=2), hold=hold))
    gang["metadata"]["resourceVersion"] = version
    assert verdicts(plan(gang)) == {"train": answer}


def test_pods_of_a_gang_that_holds_its_devices_are_not_counted_beside_it() -> None:
    """Three and three of four devices would not fit."""
    member = builders.member(builders.member_claim(template="one", name="gpu"), count=3)
    gang = builders.gang(member, name="train", hold=True)
    job = written_job("train", 3, gang="train", template="one", **GATED)
    assert verdicts(plan(gang, job)) == {"train": "allocated"}


def test_what_makes_pods_says_whose_gang_they_are() -> None:
    """As the publisher has it: a Job waits whole, replicas come one by one."""
    job = written_job("train", 5, template="one")
    assert verdicts(plan(job)) == {"train": "none NoCandidate"}
    indexed = written_job("train", 4, template="one")
    indexed["spec"]["completionMode"] = "Indexed"
    assert verdicts(plan(indexed)) == {"train": "allocated"}
    queue = written_job("train", 5, template="one", size=1)
    assert sorted(verdicts(plan(queue)).values())[:4] == ["allocated"] * 4
    replicas = {**job, "apiVersion": "apps/v1", "kind": "Deployment"}
    replicas["spec"] = {"replicas": 5, "template": job["spec"]["template"]}
    assert sorted(verdicts(plan(replicas)).values())[:4] == ["allocated"] * 4
    cron = {
        **job,
        "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": indexed["spec"]}},
    }
    assert verdicts(plan(cron)) == {"train-xxxxx": "allocated"}


@pytest.mark.parametrize("cpu", [1, 100])
def test_the_launcher_of_an_mpi_job_is_a_member_of_its_gang(cpu: int) -> None:
    """Without any label of ours, and without claims."""

    def role(count: int, **spec: Any) -> Json:
        return {"replicas": count, "template": {"spec": pod_spec(**spec)}}

    replicas = {"Launcher": role(1, cpu=cpu), "Worker": role(2, template="one")}
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "nccl", "namespace": builders.NAMESPACE},
        "spec": {"mpiReplicaSpecs": replicas},
    }
    found = plan(job)
    if cpu > 1:
        assert verdicts(found) == {"nccl": "none NodeResourcesInsufficient"}
    else:
        assert [(each.name, each.pods) for each in found.gangs[0].members] == [
            ("launcher", ("nccl-launcher-0",)),
            ("worker", ("nccl-worker-0",)),
            ("worker", ("nccl-worker-1",)),
        ]


# --- claims ---------------------------------------------------------------------------


def test_a_generated_claim_belongs_to_its_pod() -> None:
    """By the pod's status, or by owner and annotation while that is not written."""
    claim = raw(builders.claim(builders.request(count=3), name="a-gpu-x7f2c"))
    by_status = written_pod("a", template="one", generated={"gpu": "a-gpu-x7f2c"})
    by_owner = written_pod("a", template="one", live=True)
    for pod, made in ((by_status, claim), (by_owner, generated_claim(claim, "a"))):
        found = plan(made, pod)
        assert verdicts(found) == {"a": "allocated"}
        (answer,) = found.claims
        assert (answer.name, answer.pod) == ("a-gpu-x7f2c", "a")
        assert answer.allocation is not None
        assert len(answer.allocation.devices.results) == 3


def test_a_claim_that_a_template_will_make_is_named_as_kubernetes_would() -> None:
    """But for the characters that are drawn."""
    found = plan(written_job("train", 2, template="one"))
    assert [claim.name for claim in found.claims] == [
        "train-0-gpu-xxxxx",
        "train-1-gpu-xxxxx",
    ]


def test_an_allocated_claim_is_what_the_pod_has() -> None:
    """It takes nothing more, and binds the pod to its node."""
    claim = held("mine", *(f"gpu-{n}" for n in range(DEVICES)))
    found = plan(claim, written_node("node-0"), written_pod("a", claim="mine", cpu=1))
    assert verdicts(found) == {"a": "allocated"}
    (member,) = found.gangs[0].members
    assert member.node == builders.NODE
    assert found.claims == ()
    assert found.stats.allocated_claims == 1
    heavy = plan(claim, written_pod("a", claim="mine", cpu=9))
    assert verdicts(heavy) == {"a": "none NodeResourcesInsufficient"}


def test_pods_that_share_a_claim_come_one_after_the_other() -> None:
    """The first is asked for with it; the others go where it is, if they can."""
    claim = builders.claim(name="both")
    pods = [written_pod(n, claim="both", cpu=5, live=True) for n in ("a", "b")]
    found = plan(claim, *pods)
    assert verdicts(found) == {"a": "allocated", "b": "none NodeResourcesInsufficient"}
    light = [written_pod(n, claim="both", cpu=3, live=True) for n in ("a", "b")]
    found = plan(claim, *light)
    assert verdicts(found) == {"a": "allocated", "b": "allocated"}
    (answer,) = found.claims
    assert [user.name for user in answer.reserved_for] == ["a", "b"]


def test_pods_of_a_gang_that_share_a_claim_go_together_or_not_at_all() -> None:
    claim = builders.claim(name="both")
    for cpu, verdict in ((4, "allocated"), (5, "none NodeResourcesInsufficient")):
        pods = [
            written_pod(n, claim="both", cpu=cpu, gang="train", size=2)
            for n in ("a", "b")
        ]
        assert verdicts(plan(claim, *pods)) == {"train": verdict}


def test_who_waits_for_a_claim_that_nobody_gets_is_told() -> None:
    claim = builders.claim(builders.request(count=5), name="both")
    pods = [written_pod(n, claim="both") for n in ("a", "b")]
    found = verdicts(plan(claim, *pods))
    assert found == {"a": "none NoCandidate", "b": "waits ClaimShared"}


def test_of_gang_objects_that_name_a_claim_one_gets_it() -> None:
    """The claim is no gang of its own beside them, and is allocated once."""
    claim = builders.claim(name="both")
    naming = builders.member(builders.member_claim(claim="both"))
    gangs = [
        builders.gang(naming, name=name, uid=uid)
        for name, uid in (("a", ""), ("b", builders.UID))
    ]
    found = plan(claim, *gangs)
    assert sorted(verdicts(found).values()) == ["allocated", "none ClaimShared"]
    assert [claim.verdict for claim in found.claims].count("allocated") == 1


def test_a_claim_that_nobody_uses_takes_nothing_from_pods() -> None:
    """Whatever its place in the input: nobody allocates it before a pod uses it."""
    claim = builders.claim(builders.request(count=2), name="spare")
    found = verdicts(plan(claim, written_job("train", 3, template="one")))
    assert found == {"train": "allocated", "spare": "none Outranked"}
    assert verdicts(plan(claim)) == {"spare": "allocated"}


# --- pods that are further ------------------------------------------------------------


def test_bound_pods_use_their_node_and_finished_ones_nothing() -> None:
    running = written_pod(
        "run", cpu=6, live=True, phase="Running", nodeName=builders.NODE
    )
    done = written_pod(
        "done", cpu=6, live=True, phase="Succeeded", nodeName=builders.NODE
    )
    asks = written_pod("a", template="one", cpu=4)
    assert verdicts(plan(running, asks)) == {"a": "none NodeResourcesInsufficient"}
    found = plan(done, asks)
    assert verdicts(found) == {"a": "allocated"}
    assert found.stats.settled_pods == 1


def test_a_pod_that_goes_away_asks_for_nothing() -> None:
    going = written_pod(
        "a",
        template="one",
        live=True,
        metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"},
    )
    assert plan(going).gangs == ()


def test_the_pod_that_replaces_a_failed_one_is_asked_for_alone() -> None:
    """The others of its gang run, and count towards its size."""
    gang: Json = {"gang": "train", "size": 3, "live": True}
    running = [
        written_pod(
            f"w-{n}",
            claim=f"c-{n}",
            phase="Running",
            nodeName=builders.NODE,
            metadata={"annotations": {GANG_UID: "u", "moorings.dev/gang-size": "3"}},
            **gang,
        )
        for n in range(2)
    ]
    for pod in running:
        pod["metadata"]["labels"] = {"moorings.dev/gang": "train"}
    claims = [held(f"c-{n}", f"gpu-{n}") for n in range(2)]
    anew = written_pod("w-2", template="one", **gang, **GATED)
    found = plan(*claims, *running, anew)
    assert verdicts(found) == {"train": "allocated"}
    assert [each.pods for each in found.gangs[0].members] == [("w-2",)]


def test_a_pod_on_a_node_without_devices_is_no_yes() -> None:
    """Nobody allocates a claim of a pod that is bound."""
    found = plan(
        builders.claim(name="c"),
        written_pod("a", claim="c", nodeName=builders.NODE, live=True),
    )
    assert verdicts(found) == {"a": "waits PlacementLost"}
    # Nor makes one from its template before kubelet refuses the pod.
    found = plan(written_pod("a", template="one", nodeName=builders.NODE))
    assert verdicts(found) == {"a": "waits PlacementLost"}
    assert found.stats.settled_pods == 0
    running = written_pod("a", template="one", nodeName=builders.NODE, phase="Running")
    assert verdicts(plan(running)) == {}


def test_a_pod_with_a_node_has_no_gate() -> None:
    """The API server refuses it (kubernetes: validateSchedulingGates)."""
    found = plan(written_pod("a", template="one", nodeName=builders.NODE, **GATED))
    assert verdicts(found) == {"a": "error Invalid"}


# --- the gate -------------------------------------------------------------------------


def test_pods_without_our_gate_are_answered_and_told() -> None:
    found = plan(written_pod("a", template="one"))
    assert verdicts(found) == {"a": "allocated"}
    (note,) = found.notes
    assert note.startswith(f"pod a: planned as if the gate {GATE}")
    assert plan(written_pod("a", template="one", **GATED)).notes == ()


def test_pods_of_another_scheduler_are_answered_and_told() -> None:
    pod = written_pod("a", template="one", schedulerName="volcano", **GATED)
    found = plan(pod)
    assert verdicts(found) == {"a": "allocated"}
    (note,) = found.notes
    assert "does not bind pods with schedulerName volcano" in note


def test_a_pod_without_the_gate_is_missed_by_a_gang_that_has_it() -> None:
    gang: Json = {"gang": "train", "size": 2}
    found = plan(
        written_pod("launcher", **gang),
        written_pod("worker", template="one", **gang, **GATED),
    )
    assert verdicts(found) == {"train": "waits PodsMissing"}
    assert "the gang does not count them" in found.notes[0]


def test_pods_that_ask_for_no_device_are_kube_schedulers() -> None:
    found = plan(written_pod("web", cpu=1), written_pod("gated", cpu=1, **GATED))
    assert verdicts(found) == {"gated": "allocated"}
    assert found.notes == (
        "1 pod requests no DRA device; it is left to kube-scheduler",
    )


# --- what is not there, or wrong ------------------------------------------------------


def test_what_a_pod_refers_to_must_be_there() -> None:
    found = plan(
        written_pod("a", template="two"), written_pod("b", claim="none", live=True)
    )
    assert verdicts(found) == {
        "a": "error UnknownResourceClaimTemplate",
        "b": "error UnknownResourceClaim",
    }
    assert found.has_errors


def test_a_pod_that_the_api_server_refuses_is_missed_by_its_gang() -> None:
    gang: Json = {"gang": "train", "size": 2}
    bad = written_pod("a", **gang)
    bad["spec"]["resourceClaims"] = [{"name": "gpu"}]
    found = plan(bad, written_pod("b", template="one", **gang))
    assert verdicts(found) == {"a": "error Invalid", "train": "waits PodsMissing"}
    assert found.gangs[0].reasons[0].field == "spec.resourceClaims[0]"


def test_gangs_of_a_cluster_are_older_than_those_of_a_manifest() -> None:
    """In the order in which their last pods came, whatever the order of the input."""
    late = written_pod("late", template="one", live=True)
    late["metadata"]["creationTimestamp"] = "2026-11-20T13:00:00Z"
    cluster = make_cluster(
        entries(
            written_pod("new", template="one"),
            late,
            written_pod("early", template="one", live=True),
        )
    )
    names = sorted(cluster.ages, key=lambda group: cluster.ages[group])
    assert [group.name for group in names] == ["early", "late", "new"]


def test_a_claim_that_needs_no_pod_is_allocated_first_and_its_pods_go_there() -> None:
    """It is no gang behind all others, and does not wait for its pods."""
    claim = builders.labelled(builders.claim(builders.request(count=3), name="data"))
    found = plan(claim, *(written_pod(n, claim="data", live=True) for n in ("a", "b")))
    assert verdicts(found) == {"data": "allocated", "a": "allocated", "b": "allocated"}
    (answer,) = found.claims
    assert (answer.name, answer.gang) == ("data", "data")
    assert [user.name for user in answer.reserved_for] == ["a", "b"]


def test_a_claim_that_needs_no_pod_and_fits_nowhere_keeps_its_pods_waiting() -> None:
    large = builders.claim(builders.request(count=5), name="data")
    found = plan(builders.labelled(large), written_pod("a", claim="data"))
    assert verdicts(found) == {"data": "none NoCandidate", "a": "waits ClaimShared"}


def test_claims_that_a_template_labels_are_allocated_one_by_one() -> None:
    template = builders.claim_template(builders.request(count=2), name="two")
    labels = {ALLOCATE: IMMEDIATE}
    spec = replace(template.spec, metadata=ObjectMeta(labels=labels))
    job = written_job("train", 3, gang="train", size=3, template="two")
    found = verdicts(plan(replace(template, spec=spec), job))
    assert found == {
        "train-0-gpu-xxxxx": "allocated",
        "train-1-gpu-xxxxx": "allocated",
        "train-2-gpu-xxxxx": "none Outranked",
        "train": "waits ClaimShared",
    }
