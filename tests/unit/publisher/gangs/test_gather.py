"""Pods become a gang with what made them; one author stops nobody else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.gang import AvoidedNode, GangPhase
from contracts.ids import GangUID, NodeName
from contracts.messages import CancelGang, GatesOpened, SubmitGang
from contracts.names import CONSTRAINTS, RECOVERY, TOPOLOGY
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import OwnerKey, WorkloadAPI
from contracts.pods.node_affinity import read_required_nodes
from contracts.validate.names import check_label_value
from contracts.workload import Pod
from publisher.gangs.gang_size import Company, find_company
from publisher.gangs.gather import ReadyGang, UnsubmittedPods, assemble
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.readiness import NotReady
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated
from tests.builders.plans import context_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.values import NAMESPACE, UID
from tests.builders.workloads import (
    Json,
    controlled_by,
    coscheduling_pod_marks,
    job,
    job_set_pod_marks,
    job_set_spec,
    jobs_pods,
    kueue_pod_marks,
    made_pod,
    mpi_job_pod_marks,
    owner_object,
    replicated_job,
    stateful_set_pod_marks,
    view_of_workloads,
)


def waiting(name: str, size: str = "1", member: str = "", cpu: int = 1) -> Pod:
    return waiting_pod(
        name, gang="train", size=size, member=member, requests={"cpu": cpu}
    )


def assembled(*pods: Pod) -> ReadyGang | NotReady:
    return assemble(UnsubmittedPods(pods=pods), View(), lambda _: True)


@pytest.mark.parametrize("size", ["9" * 5000, "0", "-1", "5001", "four", "1e3", "²"])
def test_a_size_that_is_none_is_told(size: str) -> None:
    """The gang waits, and its owner reads why in a short line."""
    told = assembled(waiting("a", size))
    assert isinstance(told, NotReady)
    assert told.reason == "GangSizeInvalid"
    assert len(told.message) < 200


@pytest.mark.parametrize("name", ["x_Y", "-a"])
def test_a_label_that_names_no_gang_is_told(name: str) -> None:
    """In the words in which the API server refuses a label."""
    told = assembled(waiting_pod("a", gang=name, size=1))
    assert isinstance(told, NotReady)
    assert told.reason == "GangNameInvalid"
    assert told.message.startswith(f'label moorings.dev/gang: Invalid value: "{name}')


def test_a_lone_pod_may_have_the_longest_name() -> None:
    """A gang's name may be a label of 63 characters at most."""
    names = ["a" * 62 + "." + "b" * 63, "a" * 62 + "." + "c" * 63, "a" * 63]
    found = [assembled(waiting_pod(name)) for name in names]
    gangs = [item.gang.metadata.name for item in found if isinstance(item, ReadyGang)]
    assert len(set(gangs)) == 3
    assert gangs[-1] == names[-1]
    for name in gangs:
        assert not [*check_label_value(name, "name")]


def test_members_have_names_of_their_own_whatever_labels_say() -> None:
    """Pods that differ are two members, even under one label."""
    pods = (
        waiting("a", member="worker", cpu=1),
        waiting("b", member="worker", cpu=2),
        waiting("c", member="worker-2", cpu=1),
    )
    ready = assembled(*pods)
    assert isinstance(ready, ReadyGang)
    names = [member.name for member in ready.gang.spec.members]
    assert len(set(names)) == 3
    assert set(ready.places) == set(names)


def test_more_pods_than_a_gang_may_have_are_told_so() -> None:
    """A gang beyond the limit is not even submitted."""
    told = assembled(*(waiting(f"p{number}") for number in range(5001)))
    assert isinstance(told, NotReady)
    assert told.reason == "PodsTooMany"


def test_a_gang_without_our_label_is_found_again_by_what_put_it_together() -> None:
    """From the bus, beside a gang of our label that has the same name."""
    marks = [job_set_pod_marks("train", "worker", number) for number in range(2)]
    pods = tuple(made_pod(f"w{n}", mark) for n, mark in enumerate(marks))
    view = View(frozenset(WorkloadAPI))
    owner = read_gang_owner(
        owner_object("JobSet", "train", job_set_spec(replicated_job("worker", 2)))
    )
    assert owner is not None
    view.apply_owner(owner.key, owner)
    for pod in pods:
        view.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
    ready = assemble(UnsubmittedPods(pods=pods), view, lambda _: True)
    assert isinstance(ready, ReadyGang)
    assert [member.name for member in ready.gang.spec.members] == ["worker"]
    message = SubmitGang(
        cluster=CLUSTER, uid=GangUID("u"), gang=ready.gang, places=ready.places
    )
    (group,) = view.groups()
    assert record_of(message).group == group
    assert str(group) == f"{NAMESPACE}/train"
    assert group != GroupKey(NAMESPACE, "train")


def in_rack(name: str, cpu: int = 1) -> Pod:
    said = {TOPOLOGY: '[{"key": "rack", "members": ["pod"]}]'}
    return waiting_pod(
        name, gang="train", size=2, annotations=said, requests={"cpu": cpu}
    )


def test_what_pods_ask_together_is_submitted() -> None:
    made = assembled(in_rack("a"), in_rack("b"))
    assert isinstance(made, ReadyGang)
    assert made.gang.spec.topology == (builders.topology_rule("rack", "pod"),)


def test_pods_of_a_member_that_a_rule_may_name_are_equal() -> None:
    """Else a rule about the member would leave out those that got another name."""
    told = assembled(in_rack("a"), in_rack("b", cpu=2))
    assert isinstance(told, NotReady)
    assert told.reason == "ClaimsDiffer"
    assert told.message == "pods of member pod-2 differ in what they request"


def test_a_pod_that_replaces_another_keeps_to_the_rack_of_those_that_run() -> None:
    """It is decided alone, and what runs is not moved."""
    nodes = {"node-1": {"rack": "r1"}, "node-2": {"rack": "r1"}, "node-3": {}}
    runs = waiting_pod("b", gang="train", opened_by="u", node="node-2")
    company = Company(ran=(runs,))
    some = UnsubmittedPods(pods=(in_rack("a"),), company=company)
    made = assemble(some, view_of([runs], nodes=nodes), lambda _: True)
    assert isinstance(made, ReadyGang)
    (member,) = made.gang.spec.members
    selector = read_required_nodes(member.node.affinity)
    assert selector is not None
    (required,) = selector.node_selector_terms[0].match_expressions
    assert (required.key, required.operator, required.values) == ("rack", "In", ("r1",))


def test_a_pod_that_replaces_another_is_told_with_devices_of_those_that_run() -> None:
    """The rules over both are the solver's; what is of one pod stays with the gang."""
    rules = '[{"matchAttribute": "a.io/rail"}, {"matchAttribute": "a.io/x", %s}]'
    said = {CONSTRAINTS: rules % '"scope": "Pod"'}
    runs = waiting_pod(
        "b", gang="train", opened_by="u", node="node-2", templates=["nic"]
    )
    new = waiting_pod("a", gang="train", size=2, templates=["nic"], annotations=said)
    claims = [real_claim("a-nic"), real_claim("b-nic", allocated=builders.allocation())]
    some = UnsubmittedPods(pods=(new,), company=Company(ran=(runs,)))
    view = view_of([runs], claims, nodes=["node-1", "node-2"])
    made = assemble(some, view, lambda _: True)
    assert isinstance(made, ReadyGang)
    assert made.joins is not None
    (joined,) = made.joins.pods
    assert (joined.name, joined.node) == ("b", "node-2")
    assert [held.claim for held in joined.devices] == ["nic"]
    assert [rule.scope for rule in made.joins.constraints] == ["Gang", "Pod"]
    assert [rule.scope for rule in made.gang.spec.constraints] == ["Pod"]


def with_recovery(name: str, value: str) -> Pod:
    return waiting_pod(name, gang="train", size=2, annotations={RECOVERY: value})


def test_pods_without_a_gang_object_say_what_becomes_of_them() -> None:
    """Once their gates are open and they cannot run."""
    made = assembled(with_recovery("a", "Recreate"), with_recovery("b", "Recreate"))
    assert isinstance(made, ReadyGang)
    assert made.gang.spec.recovery == "Recreate"
    silent = assembled(waiting("a"))
    assert isinstance(silent, ReadyGang)
    assert silent.gang.spec.recovery == "Report"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("Pray", "Pray"), "'Pray' is not one of Report, Recreate"),
        (("Recreate", "Report"), "the pods disagree: Recreate, Report"),
    ],
)
def test_what_cannot_become_of_pods_is_told(
    values: tuple[str, str], message: str
) -> None:
    pods = (
        with_recovery(name, value) for name, value in zip("ab", values, strict=True)
    )
    told = assembled(*pods)
    assert isinstance(told, NotReady)
    assert told.reason == "RecoveryInvalid"
    assert told.message == f"annotation moorings.dev/recovery: {message}"


def test_nodes_that_are_avoided_are_left_out_of_every_term() -> None:
    """Each in a field of its own: a selector by field has one value."""
    nodes = tuple(AvoidedNode(node=NodeName(n), since="") for n in ("n1", "n2"))
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    terms = {"nodeSelectorTerms": [term, term]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pod = waiting_pod("a", affinity={"nodeAffinity": required})
    made = assemble(UnsubmittedPods(pods=(pod,), avoided=nodes), View(), lambda _: True)
    assert isinstance(made, ReadyGang)
    assert made.avoided == nodes
    selector = read_required_nodes(made.gang.spec.members[0].node.affinity)
    assert selector is not None
    fields = [
        [(field.operator, *field.values) for field in term.match_fields]
        for term in selector.node_selector_terms
    ]
    assert fields == [[("NotIn", "n1"), ("NotIn", "n2")]] * 2


def test_a_pod_whose_claim_has_devices_on_a_node_goes_there_all_the_same() -> None:
    node = NodeName(builders.NODE)
    pod = waiting_pod("a", shared={"gpus": "held"})
    view = view_of(
        [pod], [real_claim("held", allocated=builders.allocation(), managed=False)]
    )
    avoided = (AvoidedNode(node=node, since=""),)
    made = assemble(UnsubmittedPods(pods=(pod,), avoided=avoided), view, lambda _: True)
    assert isinstance(made, ReadyGang)
    (member,) = made.gang.spec.members
    assert (member.node.node_name, member.node.affinity) == (node, {})


@pytest.mark.parametrize(
    ("marks", "api"),
    [
        (job_set_pod_marks("x" * 1000, "worker"), WorkloadAPI.JOB_SET),
        (kueue_pod_marks("Not_A_Name", 2), WorkloadAPI.KUEUE),
        (coscheduling_pod_marks("not_a.name"), WorkloadAPI.COSCHEDULING),
        (stateful_set_pod_marks("x" * 1000, 0), WorkloadAPI.STATEFUL_SET),
    ],
)
def test_a_name_that_no_gang_can_have_is_told_of_its_pod_alone(
    marks: Json, api: WorkloadAPI
) -> None:
    """Else it would be part of subjects, which have no room for it."""
    view, pod = View(frozenset(WorkloadAPI)), made_pod("a", marks)
    assert view.group_of(pod) == GroupKey(NAMESPACE, "a", lone=True)
    told = assemble(UnsubmittedPods(pods=(pod,)), view, lambda _: True)
    assert isinstance(told, NotReady)
    assert told.reason == "GangNameInvalid"
    assert told.message.startswith(f"name of the {api} of the pod: Invalid value: ")
    assert len(told.message) < 300


def test_a_pod_beyond_the_gang_object_does_not_ride_on_its_priority() -> None:
    """A replacement does; a pod that joins by its label alone has its own."""
    workers = replace(builders.member(count=2), claims=())
    wanted = builders.gang(workers, name="train", priority=9)
    pods = [waiting(name, member="worker") for name in "abc"]

    def priority(*ran: Pod) -> int:
        asked = UnsubmittedPods(pods=(pods[2],), gang=wanted, company=Company(ran=ran))
        ready = assemble(asked, View(), lambda _: True)
        assert isinstance(ready, ReadyGang), ready
        return ready.gang.spec.priority

    assert priority(pods[0]) == 9
    assert priority(pods[0], pods[1]) == 0
    pods[2] = replace(pods[2], spec=replace(pods[2].spec, priority=3))
    assert priority(pods[0]) == 9
    assert priority(pods[0], pods[1]) == 3


A, B = "uid-a", "uid-b"


def pod(name: str, phase: str = "Pending", *, opened: bool = False) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        phase=phase,
        opened_by="g" if opened else "",
    )


def running_gang(*pods: Pod, opened: int) -> PodGangRecord:
    submission, decision = submission_of(pods), gang_allocated(pods=len(pods))
    said = GatesOpened(
        cluster=decision.cluster,
        namespace=decision.namespace,
        uid=decision.uid,
        attempt=1,
        state=1,
        pods=opened,
    )
    record = record_of(submission, decision, said)
    assert record.phase is GangPhase.RUNNING
    return record


def test_pods_that_run_count_and_those_that_failed_do_not() -> None:
    waiting = [pod("c")]
    others = [pod("a", "Running", opened=True), pod("b", "Failed", opened=True)]
    assert find_company([*waiting, *others], waiting).count == 1


def test_who_only_waits_counts_for_nobody() -> None:
    """Whatever was submitted for it: nothing of the gang runs."""
    waiting, asked = [pod("a")], pod("b")
    assert find_company([*waiting, asked], waiting, [B]).count == 0
    held = find_company([*waiting, asked], waiting, [B], held=[B]).held
    assert held == 1


def test_who_is_asked_for_stands_in_for_one_that_ran() -> None:
    """Two replacements of two that failed: the second does not wait for the first."""
    ran = [pod(name, "Failed", opened=True) for name in ("c", "d")]
    more = [pod("f"), pod("g")]
    pods = [pod("a"), pod("b"), *ran, *more, pod("e", "Running", opened=True)]
    assert find_company(pods, [pod("a")], [B]).count == 2
    assert find_company(pods, [pod("a")], [B, "uid-f", "uid-g"]).count == 3
    assert find_company(pods[:2] + pods[-1:], [pod("a")], [B]).count == 1


def test_a_pod_that_ends_while_it_is_deleted_has_not_done_its_work() -> None:
    """It is called a success when its containers end well, and is made anew."""
    leaving = waiting_pod("b", opened_by="g", phase="Succeeded", deleting=True)
    assert find_company([pod("a"), leaving], [pod("a")]).count == 0


def test_pods_that_are_gone_of_a_gang_that_runs_had_their_turn() -> None:
    first = waiting_pod("a", gang="train", templates=["gpus"], opened_by=UID)
    second, again = pod("b"), pod("c")
    record = running_gang(first, second, opened=2)
    assert find_company([first, again], [again], (), [record]).count == 2
    ended = record_of(submission_of((first, second)))
    assert find_company([first, again], [again], (), [ended]).count == 1


def test_a_pod_that_was_gone_before_its_gate_opened_never_ran() -> None:
    first = waiting_pod("a", gang="train", templates=["gpus"], opened_by=UID)
    record = running_gang(first, pod("b"), opened=1)
    assert find_company([first, pod("c")], [pod("c")], (), [record]).count == 1


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


def test_a_row_that_is_switched_on_asks_for_waiting_pods_anew() -> None:
    """Each was submitted alone: that is cancelled, and all are asked for together."""
    pods, lone = jobs_pods(0, 1), View()
    view = view_of_workloads(pods, job(2))
    for pod in pods:
        lone.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
        ready = assemble(UnsubmittedPods(pods=(pod,)), lone, lambda _: True)
        assert isinstance(ready, ReadyGang)
        record = record_of(
            SubmitGang(
                cluster=CLUSTER,
                uid=GangUID(pod.metadata.name),
                gang=ready.gang,
                places=ready.places,
            )
        )
        assert record.group is not None
        plan = plan_gang(replace(context_of(view, record), group=record.group))
        assert [type(message) for message in plan.messages] == [CancelGang]
    (group,) = view.groups()
    plan = plan_gang(replace(context_of(view), group=group))
    assert [type(message) for message in plan.messages] == [SubmitGang]
