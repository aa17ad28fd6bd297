"""Pods that were bound without us: asked for by policy, else told why they wait."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import NodeToleration
from contracts.ids import Namespace
from contracts.messages import GangRejected, SubmitGang
from contracts.names import GATE
from contracts.workload import Pod
from publisher.gangs.bypassed_pods import BypassedPods
from publisher.gangs.context import NextSteps
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.patches import Purpose
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.bypassed import sort_bypassed
from publisher.gangs.view import View, is_bypassed
from tests import builders
from tests.builders.plans import context_about, record_of
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.values import NAMESPACE


def bound(name: str = "a", claim: str = "c") -> Pod:
    pod = waiting_pod(name, gang="train", shared={"gpus": claim}, node="n1")
    return replace(pod, spec=replace(pod.spec, scheduling_gates=()))


def seen(*pods: Pod, managed: bool = True) -> View:
    """Know pods on one node and their claim, which holds nothing."""
    view = View(bypassed=BypassedPods(lambda _: True, owns_classes=False))
    view.apply_node("n1", KnownNode())
    view.apply_claim(f"{NAMESPACE}/c", real_claim("c", managed=managed))
    for pod in pods:
        view.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
    return view


def planned(view: View, *, allocates: bool) -> NextSteps:
    context = context_about(view, bound())
    return plan_gang(replace(context, allocates_bound=allocates))


def test_without_the_policy_its_author_is_told_what_to_write() -> None:
    steps = planned(seen(bound()), allocates=False)
    (report,) = steps.reports
    assert not steps.messages
    assert not steps.patches
    assert report.reason == "NodeNamed"
    assert report.message == (
        "it is on node n1 and does not start: schedulers ignore pods that are created "
        f"with spec.nodeName, so nobody allocates ResourceClaim {NAMESPACE}/c; create "
        f"it again without nodeName and with the scheduling gate {GATE}, and select "
        "the node by its label, such as nodeSelector: {kubernetes.io/hostname: NODE}"
    )


def test_by_policy_it_is_a_gang_of_one_on_its_node() -> None:
    """It takes nothing but devices, which its node has already given it room for."""
    (message,) = planned(seen(bound()), allocates=True).messages
    assert isinstance(message, SubmitGang)
    (member,) = message.gang.spec.members
    assert (member.count, member.node.node_name) == (1, "n1")
    assert member.node.resources == {}
    anything = NodeToleration(operator="Exists", effect="NoSchedule")
    assert member.node.tolerations == (anything,)


def test_its_claim_gets_our_finalizer_first() -> None:
    """In a write that fails where the claim is not as it was seen."""
    steps = planned(seen(bound(), managed=False), allocates=True)
    assert [patch.purpose for patch in steps.patches] == [Purpose.PREPARE]


def test_a_claim_that_others_wait_for_is_not_decided_twice() -> None:
    view = seen(bound(), bound("b"))
    (report,) = planned(view, allocates=True).reports
    assert f"{NAMESPACE}/c, for which 1 other pod waits, too; create" in report.message


def test_what_has_its_devices_is_left_alone() -> None:
    view = seen(bound())
    held = real_claim("c", allocated=builders.allocation(), version=2)
    view.apply_claim(f"{NAMESPACE}/c", held)
    context = context_about(view, bound())
    assert sort_bypassed(view.pods(context.group), context).reports == ()
    assert not planned(view, allocates=True).messages


def test_what_was_refused_for_good_is_not_asked_for_again() -> None:
    """Else it would be for ever; its author is told until the pod is made anew."""
    view = seen(bound())
    context = replace(context_about(view, bound()), allocates_bound=True)
    (message,) = plan_gang(context).messages
    assert isinstance(message, SubmitGang)
    refused = GangRejected(
        cluster=message.cluster,
        namespace=Namespace(NAMESPACE),
        uid=message.uid,
        name="a",
        epoch=1,
    )
    record = record_of(message, refused)
    steps = plan_gang(replace(context, records=(record,)))
    assert [report.phase for report in steps.reports] == ["Rejected"]
    assert not [each for each in steps.messages if isinstance(each, SubmitGang)]


def test_pods_that_we_let_through_are_not_bypassed() -> None:
    assert is_bypassed(bound())
    assert not is_bypassed(waiting_pod())
    assert not is_bypassed(waiting_pod(opened_by="uid"))
