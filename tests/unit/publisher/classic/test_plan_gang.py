"""What comes next for pods that wait for claims of classic DRA."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule
from contracts.ids import Namespace
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangReleased,
    GatesOpened,
    ReleaseGang,
    SubmitGang,
)
from contracts.names import ALLOCATE, IMMEDIATE
from publisher.classic.plan_gang import ClassicSteps, Message
from publisher.gangs.view import GroupKey, group_of_claim
from tests.builders.classic import (
    CLUSTER,
    ClassicWorld,
    classic_claim,
    classic_pod,
    context,
    lone,
    nodes_of,
)
from tests.builders.decisions import gang_released
from tests.builders.values import NAMESPACE

TAKEN = Reason(rule=Rule.TAKEN, message="1 device is free")
GANG = GroupKey(NAMESPACE, "train")
LONE = lone("pod")
Json = dict[str, Any]


def one_pod(*more: Json, **asked: Any) -> ClassicWorld:
    """A lone pod with one claim, about which kube-scheduler asks."""
    pod = classic_pod("pod", {"d": "claim"})
    return ClassicWorld(pod, classic_claim("claim"), context("pod", **asked), *more)


def decided(node: str, **asked: Any) -> ClassicWorld:
    """The same pod, once a node was decided."""
    world = one_pod(**asked)
    world.decide(world.submit(LONE), node)
    return world


def allocated(world: ClassicWorld, name: str = "claim", user: str = "pod") -> None:
    """Have a claim allocated by us, for a pod."""
    users = [{"resource": "pods", "name": user, "uid": f"uid-{user}"}] if user else []
    status = {"allocation": {"controller": "ours.example.com"}, "reservedFor": users}
    world.put(classic_claim(name, status=status))


def said(steps: ClassicSteps, kind: type[Message]) -> Any:
    """Give the one message of some steps."""
    (message,) = steps.messages
    assert isinstance(message, kind)
    return message


def written(world: ClassicWorld, message: SubmitGang, group: GroupKey = LONE) -> None:
    """Confirm what was decided, and that pods may run."""
    confirmed = said(world.plan(group), AllocationWritten)
    world.say(confirmed)
    steps = world.plan(group)
    assert steps.opens is not None
    world.say(
        GatesOpened(
            cluster=CLUSTER,
            namespace=Namespace(NAMESPACE),
            uid=message.uid,
            attempt=steps.opens.attempt,
            state=1,
        )
    )


def test_a_pod_is_asked_for_on_the_nodes_that_are_asked_about() -> None:
    """Those that were found unsuitable may do by now."""
    world = one_pod(potential=["a", "b"], selected="b", said={"d": ["c"], "x": ["y"]})
    message = world.submit(LONE)
    (member,) = message.gang.spec.members
    assert nodes_of(member.node.affinity) == ["a", "b", "c"]
    (claim,) = member.claims
    assert (claim.name, claim.claim_name) == ("d", "claim")
    assert claim.spec is not None
    assert [each.name for each in claim.spec.devices.requests] == ["r"]
    assert message.places["pod"][0].claims == ("claim",)
    assert world.plan(LONE).is_nothing


def test_nothing_is_asked_for_before_kube_scheduler_asks() -> None:
    """A pod without a context, or with another pod's, waits in silence."""
    other = context("pod", ["a"])
    other["metadata"]["ownerReferences"][0]["uid"] = "uid-before"
    pod, claim = classic_pod("pod", {"d": "claim"}), classic_claim("claim")
    for world in (ClassicWorld(pod, claim), ClassicWorld(pod, claim, other)):
        assert world.plan(LONE) == ClassicSteps()


def test_what_is_not_ours_is_left_alone() -> None:
    """Claims without a controller, or with another one, are others'."""
    for controller in ("", "theirs.example.com"):
        claim = classic_claim("claim", controller=controller)
        pod = classic_pod("pod", {"d": "claim"})
        world = ClassicWorld(pod, claim, context("pod", ["a"]))
        assert world.plan(LONE) == ClassicSteps()


def test_all_nodes_but_the_decided_one_are_unsuitable() -> None:
    """Then kube-scheduler selects it; the claim is allocated only then."""
    world = decided("b", potential=["a", "b"], selected="a")
    (answer,) = world.plan(LONE).answers
    assert (answer.unsuitable, answer.is_decided) == ({"d": ("a",)}, True)
    world.put(context("pod", ["a", "b"], "a", {"d": ["a"]}))
    assert world.plan(LONE).is_nothing
    world.put(context("pod", ["a", "b"], "b", {"d": ["a"]}))
    (write,) = world.plan(LONE).writes
    assert write.claim.key == f"{NAMESPACE}/claim"
    assert write.pod is not None
    assert write.pod.uid == "uid-pod"
    assert write.allocation.devices.results[0].device == "b-0"


def test_a_decision_is_confirmed_once_its_claims_are_allocated() -> None:
    """First that they are written, then that the pods may run; then it is over."""
    world = one_pod(potential=["a"], selected="a")
    message = world.submit(LONE)
    world.decide(message, "a")
    allocated(world)
    written(world, message)
    assert world.plan(LONE) == ClassicSteps()
    world.put(classic_pod("pod", {"d": "claim"}, node="a", phase="Succeeded"))
    world.say(said(world.plan(LONE), ReleaseGang))
    assert world.plan(LONE) == ClassicSteps()
    world.say(gang_released(message.uid))
    said(world.plan(LONE), ClaimsReleased)


def test_a_pod_that_is_gone_before_anything_was_written_is_cancelled() -> None:
    """Nobody holds devices for it."""
    world = decided("a", potential=["a"])
    world.remove(classic_pod("pod", {"d": "claim"}))
    assert said(world.plan(LONE), CancelGang).reason.startswith("publisher: ")


def test_without_a_place_every_node_is_unsuitable() -> None:
    """The author is told why; a gang that was not tried yet says nothing."""
    world = one_pod(potential=["a", "b"])
    message = world.submit(LONE)
    world.leave_pending(message, Reason(rule=Rule.QUEUED))
    assert world.plan(LONE) == ClassicSteps()
    world.leave_pending(message, TAKEN)
    steps = world.plan(LONE)
    (answer,) = steps.answers
    assert (answer.unsuitable, answer.is_decided) == ({"d": ("a", "b")}, False)
    assert [(told.kind, told.reason) for told in steps.told] == [
        ("Pod", "DevicesTaken")
    ]


def test_other_nodes_are_asked_for_anew() -> None:
    """What waits is given up first; what comes next is another gang."""
    world = one_pod(potential=["a"])
    message = world.submit(LONE)
    world.leave_pending(message, TAKEN)
    world.put(context("pod", ["b"], said={"d": ["a"]}))
    world.say(said(world.plan(LONE), CancelGang))
    assert world.plan(LONE) == ClassicSteps()
    world.say(released := gang_released(message.uid))
    assert isinstance(released, GangReleased)
    world.say(said(world.plan(LONE), ClaimsReleased))
    again = world.submit(LONE)
    assert again.uid != message.uid
    assert nodes_of(again.gang.spec.members[0].node.affinity) == ["a", "b"]


def test_a_node_that_kube_scheduler_rules_out_is_not_insisted_on() -> None:
    """It was left nothing else, and asks about others: it knows why."""
    world = decided("a", potential=["a", "b"])
    world.answered = {"uid-pod": ("a", "b")}
    world.put(context("pod", ["a", "b"], said={"d": ["b"]}))
    assert world.plan(LONE).is_nothing
    world.put(context("pod", ["c"], "c", {"d": ["b"]}))
    steps = world.plan(LONE)
    assert said(steps, CancelGang).reason == "publisher: kube-scheduler rules out a"
    assert steps.rules_out == (("uid-pod", "a"),)


def test_a_node_that_is_not_selected_for_long_is_given_up() -> None:
    """kube-scheduler asks about nothing else where nothing else is left to it."""
    world = decided("a", potential=["a", "b"])
    world.put(context("pod", ["a", "b"], said={"d": ["b"]}))
    assert world.plan(LONE).is_nothing
    world.overdue = frozenset({"uid-pod"})
    assert world.plan(LONE).rules_out == (("uid-pod", "a"),)
    world.put(context("pod", ["a", "b"], "a", said={"d": ["b"]}))
    assert world.plan(LONE).writes


def test_a_gang_waits_until_it_is_whole_and_asked_about() -> None:
    """Pods, their claims and contexts come one after the other."""
    pods = [
        classic_pod(f"p{n}", {"d": f"c{n}"}, gang="train", size=2, generated=True)
        for n in (0, 1)
    ]
    world = ClassicWorld(pods[0], classic_claim("c0"), context("p0", ["a", "b"]))
    (told,) = world.plan(GANG).told
    assert (told.reason, told.message) == ("PodsMissing", "1 of 2 pods are there")
    world.put(pods[1])
    assert world.plan(GANG) == ClassicSteps()
    world.put(classic_claim("c1"))
    assert world.plan(GANG) == ClassicSteps()
    world.put(context("p1", ["a", "b"], "a"))
    message = world.submit(GANG)
    (member,) = message.gang.spec.members
    assert member.count == 2
    world.decide(message, "b", "a")
    steps = world.plan(GANG)
    assert [answer.pod_uid for answer in steps.answers] == ["uid-p0"]
    assert [write.claim.name for write in steps.writes] == ["c1"]
    # The rest goes on while one has its devices.
    allocated(world, "c1", "p1")
    assert len(world.plan(GANG).answers) == 1


def test_a_gang_without_a_size_is_told() -> None:
    """It cannot be known when it is whole."""
    pod = classic_pod("p0", {"d": "c0"}, gang="train")
    world = ClassicWorld(pod, classic_claim("c0"), context("p0", ["a"]))
    assert [told.reason for told in world.plan(GANG).told] == ["GangSizeMissing"]


def test_pods_that_ask_for_different_nodes_are_different_members() -> None:
    """Each may only be where kube-scheduler would have it."""
    world = ClassicWorld(
        *(classic_pod(f"p{n}", {"d": f"c{n}"}, gang="train", size=2) for n in (0, 1)),
        *(classic_claim(f"c{n}") for n in (0, 1)),
        context("p0", ["a"]),
        context("p1", ["b"]),
    )
    members = world.submit(GANG).gang.spec.members
    assert [member.name for member in members] == ["pod", "pod-2"]
    assert [nodes_of(m.node.affinity) for m in members] == [["a"], ["b"]]


def test_one_more_pod_has_the_gang_decided_again() -> None:
    """A replacement was not asked for."""
    world = one_pod(potential=["a"])
    pods = [classic_pod(f"p{n}", {"d": f"c{n}"}, gang="train", size=1) for n in (0, 1)]
    world.put(pods[0], classic_claim("c0"), context("p0", ["a"]))
    world.decide(world.submit(GANG), "a")
    world.put(pods[1], classic_claim("c1"), context("p1", ["a"]))
    assert said(world.plan(GANG), CancelGang).reason == "publisher: more pods wait"


def test_pods_of_a_waiting_gang_that_are_over_have_it_given_up() -> None:
    """What is left is not whole."""
    pods = [classic_pod(f"p{n}", {"d": f"c{n}"}, gang="train", size=2) for n in (0, 1)]
    world = ClassicWorld(*pods, *(classic_claim(f"c{n}") for n in (0, 1)))
    world.put(context("p0", ["a"]), context("p1", ["a"]))
    world.submit(GANG)
    world.remove(pods[1])
    reason = said(world.plan(GANG), CancelGang).reason
    assert reason == "publisher: some of its pods are over"


def test_a_claim_that_two_pods_use_is_written_once() -> None:
    """The other pod is added by kube-scheduler."""
    names = ("p0", "p1")
    pods = [classic_pod(n, {"d": "claim"}, gang="train", size=2) for n in names]
    world = ClassicWorld(*pods, classic_claim("claim"))
    world.put(*(context(name, ["a"], "a") for name in names))
    world.decide(world.submit(GANG), "a", "a")
    (write,) = world.plan(GANG).writes
    assert write.pod is not None
    assert write.pod.name == "p0"


def test_a_pod_that_is_bound_is_asked_for_on_its_node() -> None:
    """No scheduler asked; the pod counts on that node already."""
    pod = classic_pod("pod", {"d": "claim"}, node="b")
    world = ClassicWorld(pod, classic_claim("claim"), context("pod", selected="b"))
    message = world.submit(LONE)
    (member,) = message.gang.spec.members
    assert (member.node.node_name, member.node.resources) == ("b", {})
    world.decide(message, "b")
    assert [write.claim.name for write in world.plan(LONE).writes] == ["claim"]


def test_a_claim_that_is_deallocated_is_decided_again() -> None:
    """kube-scheduler has it freed when a pod cannot be where it is."""
    world = one_pod(potential=["a"], selected="a")
    message = world.submit(LONE)
    world.decide(message, "a")
    allocated(world)
    written(world, message)
    world.put(classic_claim("claim"))
    assert said(world.plan(LONE), CancelGang).reason == (
        "publisher: claims were deallocated"
    )


def test_what_somebody_else_cancelled_is_not_asked_for_again() -> None:
    """A person's word outweighs that the pods are still there."""
    world = one_pod(potential=["a"])
    message = world.submit(LONE)
    cancel = CancelGang(
        cluster=CLUSTER, namespace=Namespace(NAMESPACE), uid=message.uid, reason="no"
    )
    world.say(cancel, gang_released(message.uid))
    world.say(said(world.plan(LONE), ClaimsReleased))
    assert world.plan(LONE) == ClassicSteps()


def test_an_immediate_claim_is_a_gang_without_pods() -> None:
    """It is allocated for nobody, kept while it is there, and released with it."""
    raw = classic_claim("now", labels={ALLOCATE: IMMEDIATE})
    world, group = ClassicWorld(raw), group_of_claim(f"{NAMESPACE}/now")
    assert list(world.view.groups()) == [group]
    message = world.submit(group)
    world.decide(message, "a")
    (write,) = world.plan(group).writes
    assert (write.claim.name, write.pod) == ("now", None)
    status = {"allocation": {"controller": "ours.example.com"}}
    world.put(classic_claim("now", labels={ALLOCATE: IMMEDIATE}, status=status))
    written(world, message, group)
    assert world.plan(group) == ClassicSteps()
    world.remove(raw)
    said(world.plan(group), ReleaseGang)


def test_an_immediate_claim_that_does_not_fit_says_so() -> None:
    """The event is about the claim."""
    raw = classic_claim("now", labels={ALLOCATE: IMMEDIATE})
    world, group = ClassicWorld(raw), group_of_claim(f"{NAMESPACE}/now")
    world.leave_pending(world.submit(group), TAKEN)
    assert [told.kind for told in world.plan(group).told] == ["ResourceClaim"]


@pytest.mark.parametrize("nodes", [3, 200])
def test_no_more_nodes_are_named_than_a_context_takes(nodes: int) -> None:
    """Those that were asked about just now count first."""
    old = [f"old-{number:03}" for number in range(nodes)]
    world = one_pod(potential=["a", "z"], said={"d": old})
    world.decide(world.submit(LONE), "a")
    (answer,) = world.plan(LONE).answers
    told = answer.unsuitable["d"]
    assert len(told) == min(nodes + 1, 128)
    assert "z" in told
