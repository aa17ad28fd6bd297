"""What is known of the cluster, of Gang objects and of their pods."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import Gang
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from contracts.meta import ObjectMeta
from contracts.workload import Pod
from publisher.gangs.view import GroupKey, View
from tests import builders
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
