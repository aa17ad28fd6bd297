"""Why a submitted gang can no longer get what it asked for."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.gang import AvoidedNode
from contracts.ids import NodeName
from contracts.messages import (
    SubmitGang,
)
from contracts.names import VOID
from contracts.workload import Pod
from publisher.gangs.carry_out.feasibility import find_fault
from publisher.gangs.node_affinity import leave_out, narrow_affinity, pinned_node_of
from publisher.gangs.plan_gang import plan_gang
from tests import builders
from tests.builders.plans import (
    NOW,
    context_of,
    gang_of,
    record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.storage import storage_class, volume, volume_claim, volume_of
from tests.builders.values import NAMESPACE

A = waiting_pod("a", gang="train", templates=["gpus"])
B = waiting_pod("b", gang="train", templates=["gpus"])


def fault(pods: Iterable[Pod], claims: Iterable[ResourceClaim]) -> str:
    """Find what speaks against a gang of A and B, of which these are there."""
    pods = tuple(pods)
    record = record_of(submission_of((A, B)))
    context = context_of(view_of(pods, claims), record)
    return find_fault(context, gang_of(record, *pods), ())


def test_nothing_has_changed() -> None:
    assert fault((A, B), (real_claim("a-gpus"), real_claim("b-gpus"))) == ""


def test_a_pod_is_gone() -> None:
    claims = (real_claim("a-gpus"), real_claim("b-gpus"))
    assert fault((A,), claims) == "1 of 2 pods are gone"
    ended = waiting_pod("b", gang="train", templates=["gpus"], phase="Failed")
    assert fault((A, ended), claims) == "1 of 2 pods are gone"


def test_a_pod_was_withdrawn() -> None:
    marks = {VOID: record_of(submission_of((A, B))).uid}
    marked = waiting_pod("b", gang="train", templates=["gpus"], annotations=marks)
    claims = (real_claim("a-gpus"), real_claim("b-gpus"))
    assert fault((A, marked), claims) == "the decision was given up"


def test_a_claim_is_gone_or_going() -> None:
    text = f"ResourceClaim {builders.NAMESPACE}/b-gpus is"
    assert fault((A, B), (real_claim("a-gpus"),)) == f"{text} gone"
    going = (real_claim("a-gpus"), real_claim("b-gpus", deleting=True))
    assert fault((A, B), going) == f"{text} being deleted"


def test_a_claim_holds_what_nobody_decided() -> None:
    """What we wrote for the waiting pods ourselves is taken back, and no fault."""
    held = builders.allocation()
    free = real_claim("a-gpus")
    theirs = real_claim("b-gpus", allocated=held, reserved=["other"])
    assert "was allocated by somebody else" in fault((A, B), (free, theirs))
    ours = real_claim("b-gpus", allocated=held, reserved=["b"])
    assert fault((A, B), (free, ours)) == ""


def test_a_claim_was_made_anew_with_another_spec() -> None:
    spec = builders.claim_spec(builders.request("gpu", count=2))
    again = real_claim("b-gpus", spec=spec)
    assert "recreated with other requests" in fault(
        (A, B), (real_claim("a-gpus"), again)
    )


def test_a_claim_that_had_its_devices_has_lost_them() -> None:
    """It was not submitted, so nobody decides it: its pods cannot run."""
    more = waiting_pod("b", gang="train", templates=["gpus"], shared={"nic": "nic"})
    claims = (real_claim("a-gpus"), real_claim("b-gpus"), real_claim("nic"))
    assert "no longer holds devices" in fault((A, more), claims)
    held = real_claim("nic", allocated=builders.allocation(), reserved=["b"])
    assert fault((A, more), (*claims[:2], held)) == ""


def test_a_pin_is_read_where_it_can_be() -> None:
    selector = builders.node_name_selector("node-7")
    pinned = waiting_pod("a", affinity=narrow_affinity({}, selector))
    assert pinned_node_of(pinned) == "node-7"
    assert pinned_node_of(A) == ""


def test_a_volume_that_was_bound_elsewhere_meanwhile_voids_the_gang() -> None:
    """What was asked for is another question now; what has not changed is none."""
    pod = waiting_pod(
        "a", gang="train", size=1, templates=["gpus"], volumes=(volume_of(),)
    )
    view = view_of((pod,), (real_claim("a-gpus"),))
    view.volumes.apply_class("late", storage_class(provisioner="csi", zones=["z"]))
    view.volumes.apply_claim(f"{NAMESPACE}/data", volume_claim())
    context = context_of(view)
    (submission,) = plan_gang(context).messages
    assert isinstance(submission, SubmitGang)
    record = record_of(submission)
    assert find_fault(context, gang_of(record, pod), ()) == ""
    view.volumes.apply_claim(f"{NAMESPACE}/data", volume_claim(bound_to="pv-1"))
    missing = "pod a: PersistentVolume pv-1 of data does not exist"
    assert find_fault(context, gang_of(record, pod), ()) == missing
    view.volumes.apply_volume("pv-1", volume("pv-1", zone="z"))
    moved = "the volumes of a are on other nodes now"
    assert find_fault(context, gang_of(record, pod), ()) == moved


def test_nodes_that_are_avoided_are_no_change_of_volumes() -> None:
    """Or a gang that avoids a node would be asked for again without end."""
    pod = waiting_pod(
        "a", gang="train", size=1, templates=["gpus"], volumes=(volume_of(),)
    )
    view = view_of((pod,), (real_claim("a-gpus"),))
    view.volumes.apply_class("late", storage_class(provisioner="csi", zones=["z"]))
    view.volumes.apply_claim(f"{NAMESPACE}/data", volume_claim())
    context = context_of(view)
    (asked,) = plan_gang(context).messages
    assert isinstance(asked, SubmitGang)
    avoided = (AvoidedNode(node=NodeName("n1"), since=NOW),)
    (member,) = asked.gang.spec.members
    member = replace(member, node=leave_out(member.node, avoided))
    gang = replace(asked.gang, spec=replace(asked.gang.spec, members=(member,)))
    record = record_of(replace(asked, gang=gang, avoided=avoided))
    assert find_fault(context, gang_of(record, pod), ()) == ""
