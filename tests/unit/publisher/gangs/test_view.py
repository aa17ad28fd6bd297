"""What is known of the cluster, of Gang objects and of their pods, and what differs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.gang import Gang
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from contracts.meta import ObjectMeta
from contracts.workload import Pod
from publisher.gangs.compare import default_member_of, find_difference, member_name_of
from publisher.gangs.context import StatusReport
from publisher.gangs.notes import list_notes
from publisher.gangs.status import make_gang_status
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.plans import view_of
from tests.builders.pods import real_claim, waiting_pod

NS = builders.NAMESPACE
DEVICE = DeviceID(
    DriverName(builders.DRIVER), PoolName(builders.NODE), DeviceName("gpu-0")
)
TRAIN = GroupKey(NS, "train")


def lone(name: str) -> GroupKey:
    return GroupKey(NS, name, lone=True)


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_pods_of_a_gang_come_in_the_order_of_their_numbers() -> None:
    """Number 10 comes after number 2."""
    view = View()
    for name in ("train-10", "train-2", "train-1-0"):
        view.apply_pod(f"{NS}/{name}", waiting_pod(name, gang="train"))
    view.apply_pod(f"{NS}/train", waiting_pod("train"))
    assert names(view.pods(TRAIN)) == ["train-1-0", "train-2", "train-10"]
    assert names(view.pods(lone("train"))) == ["train"]
    assert set(view.groups()) == {TRAIN, lone("train")}


def test_pods_that_never_waited_for_us_are_not_kept() -> None:
    """Only a gate of ours, or our mark that it was opened, makes a pod ours."""
    view = View()
    other = builders.pod("other", uid="uid-other")
    assert view.apply_pod(f"{NS}/other", other) == frozenset()
    assert view.pod(f"{NS}/other") is None
    opened = waiting_pod("opened", opened_by="uid-gang")
    assert view.apply_pod(f"{NS}/opened", opened) == {lone("opened")}


def test_pod_moves_with_its_gang_label() -> None:
    """Both gangs hear of it."""
    view = View()
    view.apply_pod(f"{NS}/a", waiting_pod("a", gang="train"))
    other = GroupKey(NS, "other")
    moved = waiting_pod("a", gang="other", version=2)
    assert view.apply_pod(f"{NS}/a", moved) == {TRAIN, other}
    assert view.pods(TRAIN) == ()
    assert set(view.groups()) == {other}


def test_an_older_version_changes_nothing_and_the_same_one_is_told_again() -> None:
    """A watch may lag behind what we know already."""
    view = View()
    newer = waiting_pod("a", version=10)
    view.apply_pod(f"{NS}/a", newer)
    assert view.apply_pod(f"{NS}/a", waiting_pod("a", version=9)) == frozenset()
    assert view.pod(f"{NS}/a") == newer
    assert view.apply_pod(f"{NS}/a", newer) == {lone("a")}


def test_a_late_answer_does_not_bring_an_object_back() -> None:
    """What was deleted stays so, whatever comes late."""
    view = View()
    view.apply_pod(f"{NS}/a", waiting_pod("a"))
    assert view.apply_pod(f"{NS}/a", None) == {lone("a")}
    assert view.apply_pod(f"{NS}/a", waiting_pod("a", version=2)) == frozenset()
    assert view.pod(f"{NS}/a") is None


def test_what_was_read_under_the_name_of_what_is_gone_stays() -> None:
    """A StatefulSet makes the pod anew; our read of it is ahead of the watch."""
    view = View()
    view.apply_pod(f"{NS}/a", waiting_pod("a", uid="first"))
    view.apply_pod(f"{NS}/a", waiting_pod("a", uid="second", version=3))
    assert view.apply_pod(f"{NS}/a", None, "first") == frozenset()
    found = view.pod(f"{NS}/a")
    assert found is not None
    assert found.metadata.uid == "second"
    late = waiting_pod("a", uid="first", version=2)
    assert view.apply_pod(f"{NS}/a", late) == frozenset()
    between = waiting_pod("a", uid="between", version=2)
    assert view.apply_pod(f"{NS}/a", between) == frozenset()
    assert view.apply_pod(f"{NS}/a", None, "between") == frozenset()
    assert view.apply_pod(f"{NS}/a", waiting_pod("a", uid="second", version=4))
    assert view.apply_pod(f"{NS}/a", None, "second")


def test_claims_say_who_uses_them_and_who_holds_a_device() -> None:
    """A change of a claim is news to all who use it."""
    view = View()
    view.apply_pod(f"{NS}/a", waiting_pod("a", shared={"gpus": "c"}))
    view.apply_pod(f"{NS}/b", waiting_pod("b", shared={"gpus": "c"}))
    claim = real_claim("c", allocated=builders.allocation())
    assert view.apply_claim(f"{NS}/c", claim) == {lone("a"), lone("b")}
    assert names(view.users(f"{NS}/c")) == ["a", "b"]
    assert view.holders(DEVICE) == {f"{NS}/c"}
    assert view.apply_claim(f"{NS}/c", None) == {lone("a"), lone("b")}
    assert view.holders(DEVICE) == frozenset()


def test_who_shares_a_claim_with_a_pod_hears_of_it() -> None:
    """A gang may be waiting for just that pod to run or to go."""
    view = View()
    view.apply_pod(f"{NS}/a", waiting_pod("a", shared={"gpus": "c"}))
    pod = waiting_pod("b", shared={"gpus": "c"})
    both = {lone("a"), lone("b")}
    assert view.apply_pod(f"{NS}/b", pod) == both
    assert view.apply_pod(f"{NS}/b", None) == both


def test_shared_and_admin_devices_are_held_by_nobody_alone() -> None:
    """Others may have them as well."""
    view = View()
    for name, fields in (("c", {"share_id": "one"}), ("d", {"admin_access": True})):
        held = builders.allocation(builders.result(**fields))
        view.apply_claim(f"{NS}/{name}", real_claim(name, allocated=held))
    assert view.holders(DEVICE) == frozenset()


def test_generated_claims_are_known_once_the_status_names_them() -> None:
    """Their names are Kubernetes' to give."""
    view = View()
    pod = waiting_pod("a", templates=["gpus"])
    unnamed = replace(pod, status=replace(pod.status, resource_claim_statuses=()))
    view.apply_pod(f"{NS}/a", unnamed)
    assert view.users(f"{NS}/a-gpus") == ()
    view.apply_pod(f"{NS}/a", replace(pod, metadata=pod.metadata))
    assert names(view.users(f"{NS}/a-gpus")) == ["a"]


def test_a_gang_object_is_a_group_before_its_pods_are_there() -> None:
    """And none any more once it is gone."""
    view = View()
    gang = Gang(metadata=ObjectMeta(name="train", namespace=NS, uid="g"))
    assert view.apply_gang(f"{NS}/train", gang) == {TRAIN}
    assert list(view.groups()) == [TRAIN]
    assert view.gang(TRAIN) == gang
    assert view.gang(lone("train")) is None
    assert view.apply_gang(f"{NS}/train", None) == {TRAIN}
    assert list(view.groups()) == []


def train(*names: str, template: str = "gpus-template", count: int = 2) -> Gang:
    members = [
        builders.member(
            builders.member_claim(template=template), name=name, count=count
        )
        for name in names
    ]
    return builders.gang(*members)


def worker(name: str, member: str = "worker") -> Pod:
    return waiting_pod(name, gang="train", member=member, templates=["gpus"])


def difference(gang: Gang, *pods: Pod, whole: bool = True) -> str:
    claims = [real_claim(f"{pod.metadata.name}-gpus") for pod in pods]
    view = view_of(pods, claims)
    return find_difference(gang, pods, view, lambda _: True, whole=whole)


def test_pods_as_the_gang_says_do_not_differ() -> None:
    assert difference(train("worker"), worker("a"), worker("b")) == ""


def test_the_numbers_count_only_when_all_pods_are_there() -> None:
    text = "member worker: 2 pods wanted, 1 is there"
    assert difference(train("worker"), worker("a")) == text
    assert difference(train("worker"), worker("a"), whole=False) == ""


@pytest.mark.parametrize(
    ("gang", "text"),
    [
        (train("other", "more"), "pod a: the Gang has no member worker"),
        (
            train("worker", template="nic-template"),
            "pod a: claim gpus is from gpus-template, not nic-template",
        ),
        (
            builders.gang(builders.member(builders.member_claim(name="nic"), count=2)),
            "pod a: it has claims gpus, but the Gang nic",
        ),
    ],
)
def test_the_first_pod_that_differs_is_named(gang: Gang, text: str) -> None:
    assert difference(gang, worker("a"), worker("b")) == text


def test_a_claim_that_is_written_out_must_ask_for_the_same() -> None:
    same = builders.member_claim(builders.request("gpu"))
    more = builders.member_claim(builders.request("gpu", count=2))
    pod = worker("a")
    for claim, text in ((same, ""), (more, "differs from what the Gang")):
        gang = builders.gang(builders.member(claim, name="worker"))
        assert text in difference(gang, pod)


def test_pods_without_a_label_are_the_only_member() -> None:
    assert default_member_of(train("worker")) == "worker"
    assert default_member_of(train("worker", "driver")) == "pod"
    assert default_member_of(None) == "pod"
    assert member_name_of(worker("a", member=""), train("worker")) == "worker"


NOW = "2026-11-20T12:00:00Z"


def shown(*pods: Pod) -> tuple[Any, Any]:
    """Give phase and pods of a gang of two of which there is nothing to tell."""
    gang = builders.gang(builders.member(count=2), name="red")
    status = make_gang_status(gang, [], pods, {}, NOW)
    return status["phase"], status["pods"]


def ran(name: str, phase: str) -> Pod:
    return waiting_pod(name, gang="red", opened_by="uid-red", node="n1", phase=phase)


def deleted(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=NOW))


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ((), ("Pending", "0/2")),
        ((waiting_pod("a", gang="red"),), ("Pending", "0/2")),
        # The bus lost what was said of the gang, or somebody cancelled it: it runs.
        ((ran("a", "Running"), ran("b", "Running")), ("Running", "2/2")),
        ((ran("a", "Succeeded"), ran("b", "Running")), ("Running", "2/2")),
        ((ran("a", "Succeeded"), ran("b", "Succeeded")), ("Completed", "2/2")),
        # One that failed was replaced.
        (
            (ran("a", "Running"), ran("b", "Failed"), ran("c", "Running")),
            ("Running", "2/2"),
        ),
        ((ran("a", "Running"), deleted(ran("b", "Running"))), ("Running", "1/2")),
    ],
)
def test_pods_are_counted_as_they_are(
    pods: tuple[Pod, ...], status: tuple[str, str]
) -> None:
    """By what each pod shows of itself, and by nothing that we remember."""
    assert shown(*pods) == status


def conditions_of(reason: str, present: dict[str, Any]) -> dict[str, str]:
    """Give the conditions of a gang of which that is told; empty: all is well."""
    pods = (ran("a", "Running"), waiting_pod("b", gang="red", opened_by="uid-red"))
    told = StatusReport(phase="Running", reason=reason, message="why", pods=pods[1:])
    gang = builders.gang(builders.member(count=2), name="red")
    status = make_gang_status(gang, [told], pods, present, NOW)
    return {one["type"]: one["status"] for one in status["conditions"]}


def test_what_kube_scheduler_refuses_is_a_condition_while_it_lasts() -> None:
    """The devices are allocated all the same."""
    refused = conditions_of("SchedulerRefused", {})
    assert refused == {"Allocated": "True", "SchedulerRefused": "True"}
    present = {"conditions": [{"type": "SchedulerRefused", "status": "True"}]}
    mended = conditions_of("", present)
    assert mended == {"Allocated": "True", "SchedulerRefused": "False"}


def test_a_refusal_is_a_warning() -> None:
    pod = waiting_pod("b", gang="red", opened_by="uid-red")
    told = StatusReport(
        phase="Running", reason="SchedulerRefused", message="why", pods=(pod,)
    )
    (note,) = list_notes([told], None)
    assert (note.type, note.reason) == ("Warning", "GangSchedulerRefused")
