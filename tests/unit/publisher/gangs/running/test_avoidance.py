"""Which pods kube-scheduler refuses, and which nodes their gang avoids for how long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from contracts.avoidance import NodesAvoided
from contracts.gang import AvoidedNode
from contracts.ids import GangUID, Namespace, NodeName
from contracts.workload import Pod, PodSchedulingGate, PodStatus
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.running.avoidance import (
    MOST_AVOIDED,
    SeenRefusals,
    find_avoidance,
    find_end,
    find_refusal,
    pause_left_s,
    plan_avoidance,
)
from publisher.gangs.view import GroupKey
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.builders.plans import NOW, context_of, submission_of, view_of
from tests.builders.pods import refused_pod, uid_of, waiting_pod

SOON = "2026-11-20T12:01:00Z"
LATER = "2026-11-20T12:10:00Z"
NODES = ("node-1", "node-2")
REFUSED = refused_pod("a", "node-1", gang="train")
WAITING = waiting_pod("b", gang="train", templates=["gpus"])
AVOIDED = AvoidedNode(
    node=NodeName("node-1"),
    pod="a",
    pod_uid="uid-a",
    gang=GangUID(builders.UID),
    message="0/2 nodes are available",
    since=NOW,
)


def said(*nodes: AvoidedNode, recreations: int = 0) -> NodesAvoided:
    return NodesAvoided(
        cluster=CLUSTER,
        namespace=Namespace(builders.NAMESPACE),
        name="train",
        nodes=nodes,
        recreations=recreations,
        recreated_at=NOW if recreations else "",
    )


def context(
    *known: NodesAvoided, now: str = NOW, nodes: Sequence[str] = NODES
) -> PlanContext:
    by_name = {message.name: message for message in known}
    view = view_of((REFUSED, WAITING), nodes=nodes)
    return replace(context_of(view), now=now, avoided=by_name.get)


def planned(situation: PlanContext, *refused: Pod, recreations: int = 0) -> NextSteps:
    return plan_avoidance(situation, refused, recreations)


def test_a_refusing_node_is_remembered_with_the_words_of_kube_scheduler() -> None:
    plan = planned(context(), REFUSED)
    assert plan.messages == (said(AVOIDED),)
    assert plan.look_again_s is not None


def rejected(at: str = NOW) -> Pod:
    """Let kubelet reject the pod `a`."""
    pod = refused_pod("a", "node-1", gang="train", node="node-1")
    status = PodStatus(
        phase="Failed",
        reason="OutOfcpu",
        message="Pod was rejected: Node didn't have enough resource: cpu",
        start_time=at,
    )
    return replace(pod, status=status)


def test_a_node_whose_kubelet_rejects_a_pod_is_remembered() -> None:
    view = view_of((rejected(), WAITING), nodes=NODES)
    situation = context_of(view)
    words = "OutOfcpu: Node didn't have enough resource: cpu"
    avoided = replace(AVOIDED, message=f"kubelet: {words}")
    assert planned(situation).messages == (said(avoided),)
    assert str(avoided) == f"node node-1 avoided: kubelet refused pod a there: {words}"
    # Also once the pod is gone; and it is said once.
    view.apply_pod(f"{builders.NAMESPACE}/a", None)
    again = replace(context_of(view), avoided={"train": said(avoided)}.get)
    assert planned(again).messages == ()
    assert find_avoidance(again, (WAITING,)).nodes == (avoided,)


def test_a_rejecting_node_that_changed_since_may_do() -> None:
    view = view_of((rejected(), WAITING), nodes=NODES)
    view.apply_node("node-1", KnownNode(state="changed"))
    assert planned(context_of(view)).messages == ()
    late = replace(context_of(view_of((rejected(), WAITING), nodes=NODES)), now=LATER)
    assert planned(late).messages == ()
    seen = SeenRefusals()
    seen.apply("uid-a", rejected(), SOON)
    (message,) = planned(replace(late, now=SOON, refused_since=seen.since)).messages
    assert isinstance(message, NodesAvoided)
    assert [each.since for each in message.nodes] == [SOON]


def test_what_is_remembered_is_not_said_again() -> None:
    assert planned(context(said(AVOIDED)), REFUSED).messages == ()


def test_a_node_that_goes_on_refusing_is_avoided_anew_when_the_time_is_over() -> None:
    (message,) = planned(context(said(AVOIDED), now=LATER), REFUSED).messages
    assert message == said(replace(AVOIDED, since=LATER))


def test_a_refusal_that_was_taken_back_is_forgotten() -> None:
    bound = refused_pod("a", "node-1", gang="train", node="node-1")
    by_name = {"train": said(AVOIDED)}
    situation = replace(context_of(view_of((bound,))), avoided=by_name.get)
    assert planned(situation).messages == (said(),)


def test_a_pod_that_is_gone_leaves_its_node_avoided() -> None:
    situation = context(said(AVOIDED))
    assert planned(situation).messages == ()
    assert find_avoidance(situation, (WAITING,)).nodes == (AVOIDED,)


@pytest.mark.parametrize(
    ("since", "now"),
    [
        (NOW, LATER),
        # As another publisher's clock may have it: a gang does not wait for years.
        ("2036-11-20T12:00:00Z", NOW),
    ],
)
def test_a_node_is_avoided_for_a_time(since: str, now: str) -> None:
    situation = context(said(replace(AVOIDED, since=since)), now=now)
    assert find_avoidance(situation, (WAITING,)).nodes == ()


def test_a_node_is_avoided_while_it_stays_as_it_is() -> None:
    situation = context(said(AVOIDED))
    situation.view.apply_node("node-1", KnownNode(state="changed"))
    assert find_avoidance(situation, (WAITING,)).nodes == ()


def test_all_nodes_are_never_avoided() -> None:
    found = find_avoidance(context(said(AVOIDED), nodes=["node-1"]), (WAITING,))
    assert found.nodes == ()
    assert found.note == (
        "pods were refused on the only node, so none is avoided any more: "
        "0/2 nodes are available"
    )


def test_a_submission_is_over_when_a_node_that_it_leaves_out_may_do_again() -> None:
    message = replace(submission_of((WAITING,)), avoided=(AVOIDED,))
    assert find_end(context(said(AVOIDED)), message, (WAITING,)) == ""
    end = find_end(context(said(AVOIDED), now=LATER), message, (WAITING,))
    assert end == "node node-1 is not avoided any more"
    assert find_end(context(), submission_of((WAITING,)), (WAITING,)) == ""


def test_pods_without_a_gang_are_known_by_what_makes_them() -> None:
    pod = refused_pod("b-x1z", "node-1", owner="job-1")
    group = GroupKey(builders.NAMESPACE, "b-x1z", lone=True)
    situation = replace(context_of(view_of((pod,), nodes=NODES)), group=group)
    (message,) = planned(situation, pod).messages
    assert isinstance(message, NodesAvoided)
    assert message.name == "Pod/job-1"
    assert message.nodes[0].pod_uid == uid_of("b-x1z")


def test_pods_are_made_anew_ever_more_seldom() -> None:
    pauses = [
        pause_left_s(context(said(recreations=count)), (WAITING,)) for count in range(9)
    ]
    assert pauses == [0, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert pause_left_s(context(said(recreations=1), now=LATER), (WAITING,)) == 0


def test_it_is_counted_in_what_is_said_before_pods_are_made_anew() -> None:
    plan = planned(context(), REFUSED, recreations=1)
    assert plan.messages == (said(AVOIDED, recreations=1),)


def test_with_too_many_refused_nodes_nothing_new_is_said_while_all_count() -> None:
    """Dropped from what is said they would be news in every plan."""
    names = [f"node-{number}" for number in range(MOST_AVOIDED + 5)]
    pods = [refused_pod(f"p-{node}", node, gang="train") for node in names]
    (message,) = planned(context(nodes=names), *pods).messages
    assert isinstance(message, NodesAvoided)
    assert [node.node for node in message.nodes] == names[:MOST_AVOIDED]
    assert planned(context(message, nodes=names), *pods).messages == ()
    (later,) = planned(context(message, nodes=names, now=LATER), *pods).messages
    assert isinstance(later, NodesAvoided)
    assert {node.since for node in later.nodes} == {LATER}


def test_two_pods_of_one_maker_refused_on_one_node_do_not_renew_each_other() -> None:
    """They are submitted singly, so each has a gang of its own."""
    first = said(replace(AVOIDED, gang=GangUID("of-the-other-pod")))
    assert planned(context(first, now=SOON), REFUSED).messages == ()


def test_a_lone_pod_shares_nothing_with_a_gang_of_its_name() -> None:
    pod = refused_pod("train", "node-1")
    group = GroupKey(builders.NAMESPACE, "train", lone=True)
    situation = replace(context(said(AVOIDED)), group=group)
    assert find_avoidance(situation, (pod,)).nodes == ()


def test_it_is_told_with_its_own_words() -> None:
    refusal = find_refusal(refused_pod("a", "node-1", message="0/2 nodes"))
    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("Unschedulable", "0/2 nodes")


def test_another_scheduler_has_reasons_of_its_own() -> None:
    assert find_refusal(refused_pod("a", "node-1", reason="SchedulerError")) is not None


def gated_by_its_author() -> Pod:
    pod = refused_pod("a", "node-1")
    gates = (PodSchedulingGate(name="example.com/later"),)
    return replace(pod, spec=replace(pod.spec, scheduling_gates=gates))


@pytest.mark.parametrize(
    "pod",
    [
        refused_pod("a", "node-1", reason="SchedulingGated"),
        refused_pod("a", "node-1", nominated="node-1"),
        refused_pod("a", "node-1", node="node-1"),
        refused_pod("a", "node-1", phase="Failed"),
        refused_pod("a", "node-1", opened_by=""),
        gated_by_its_author(),
        waiting_pod("a", opened_by="gang"),
    ],
    ids=[
        "the gate was opened a moment ago",
        "room is being made",
        "bound",
        "over",
        "not opened by us",
        "another gate",
        "not tried yet",
    ],
)
def test_what_passes_is_no_refusal(pod: Pod) -> None:
    assert find_refusal(pod) is None


def test_it_counts_from_when_it_was_first_seen() -> None:
    """The words of the condition may change meanwhile."""
    seen, pod = SeenRefusals(), refused_pod("a", "node-1")
    seen.apply("uid-a", pod, "2026-11-20T12:00:00Z")
    seen.apply("uid-a", refused_pod("a", "node-1", message="x"), "2026-11-20T12:00:09Z")
    assert seen.since("uid-a") == "2026-11-20T12:00:00Z"
    assert seen.since("uid-b") == ""


def test_what_was_tried_again_begins_anew() -> None:
    seen, pod = SeenRefusals(), refused_pod("a", "node-1")
    for pause in (refused_pod("a", "node-1", nominated="node-1"), None):
        seen.apply("uid-a", pod, "2026-11-20T12:00:00Z")
        seen.apply("uid-a", pause, "2026-11-20T12:00:05Z")
        assert seen.since("uid-a") == ""
