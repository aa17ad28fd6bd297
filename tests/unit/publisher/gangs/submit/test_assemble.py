"""Pods become a gang with what made them; one author stops nobody else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.gang import AvoidedNode
from contracts.ids import NodeName
from contracts.messages import CancelGang, SubmitGang
from contracts.names import CONSTRAINTS, RECOVERY, TOPOLOGY
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import WorkloadAPI
from contracts.pods.node_affinity import read_required_nodes
from contracts.validate.names import check_label_value
from contracts.workload import Pod
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.assemble import assemble
from publisher.gangs.submit.company import Company
from publisher.gangs.submit.readiness import NotReady
from publisher.gangs.submit.split import UnsubmittedGang
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.plans import (
    context_about,
    context_of,
    record_of,
    view_of,
)
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.values import NAMESPACE
from tests.builders.workloads import (
    Json,
    coscheduling_pod_marks,
    job,
    job_set_pod_marks,
    job_set_spec,
    jobs_pods,
    kueue_pod_marks,
    made_pod,
    owner_object,
    replicated_job,
    stateful_set_pod_marks,
    view_of_workloads,
)


def waiting(name: str, size: str = "1", member: str = "", cpu: int = 1) -> Pod:
    return waiting_pod(
        name, gang="train", size=size, member=member, requests={"cpu": cpu}
    )


def assembled(*pods: Pod) -> SubmitGang | NotReady:
    return assemble(UnsubmittedGang(pods=pods), context_about(View(), pods[0]))


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
    gangs = [item.gang.metadata.name for item in found if isinstance(item, SubmitGang)]
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
    assert isinstance(ready, SubmitGang)
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
    message = assemble(UnsubmittedGang(pods=pods), context_about(view, pods[0]))
    assert isinstance(message, SubmitGang)
    assert [member.name for member in message.gang.spec.members] == ["worker"]
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
    assert isinstance(made, SubmitGang)
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
    some = UnsubmittedGang(pods=(in_rack("a"),), company=company)
    made = assemble(some, context_of(view_of([runs], nodes=nodes)))
    assert isinstance(made, SubmitGang)
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
    some = UnsubmittedGang(pods=(new,), company=Company(ran=(runs,)))
    view = view_of([runs], claims, nodes=["node-1", "node-2"])
    made = assemble(some, context_of(view))
    assert isinstance(made, SubmitGang)
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
    assert isinstance(made, SubmitGang)
    assert made.gang.spec.recovery == "Recreate"
    silent = assembled(waiting("a"))
    assert isinstance(silent, SubmitGang)
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
    made = assemble(
        UnsubmittedGang(pods=(pod,), avoided=nodes), context_about(View(), pod)
    )
    assert isinstance(made, SubmitGang)
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
    made = assemble(
        UnsubmittedGang(pods=(pod,), avoided=avoided), context_about(view, pod)
    )
    assert isinstance(made, SubmitGang)
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
    told = assemble(UnsubmittedGang(pods=(pod,)), context_about(view, pod))
    assert isinstance(told, NotReady)
    assert told.reason == "GangNameInvalid"
    assert told.message.startswith(f"name of the {api} of the pod: Invalid value: ")
    assert len(told.message) < 300


def test_a_pod_beyond_the_gang_object_does_not_ride_on_its_priority() -> None:
    """A replacement does; a pod that joins by its label alone has its own."""
    workers = replace(builders.member(count=2), claims=())
    wanted = builders.gang(workers, name="train", priority=9)
    pods = [waiting(name, member="worker") for name in "abc"]

    def priority(*ran: Pod, gone: int = 0) -> int:
        company = Company(ran=ran, gone=gone)
        asked = UnsubmittedGang(pods=(pods[2],), company=company)
        ready = assemble(asked, context_of(view_of(gangs=[wanted])))
        assert isinstance(ready, SubmitGang), ready
        return ready.gang.spec.priority

    assert priority(pods[0]) == 9
    assert priority(pods[0], gone=1) == 9
    assert priority(pods[0], pods[1]) == 0
    pods[2] = replace(pods[2], spec=replace(pods[2].spec, priority=3))
    assert priority(pods[0]) == 9
    assert priority(pods[0], pods[1]) == 3


def test_a_row_that_is_switched_on_asks_for_waiting_pods_anew() -> None:
    """Each was submitted alone: that is cancelled, and all are asked for together."""
    pods, lone = jobs_pods(0, 1), View()
    view = view_of_workloads(pods, job(2))
    for pod in pods:
        lone.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
        ready = assemble(UnsubmittedGang(pods=(pod,)), context_about(lone, pod))
        assert isinstance(ready, SubmitGang)
        record = record_of(ready)
        assert record.group is not None
        plan = plan_gang(replace(context_of(view, record), group=record.group))
        assert [type(message) for message in plan.messages] == [CancelGang]
    (group,) = view.groups()
    plan = plan_gang(replace(context_of(view), group=group))
    assert [type(message) for message in plan.messages] == [SubmitGang]
