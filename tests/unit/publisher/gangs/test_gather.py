"""What the author of a pod writes stops nobody else."""

from __future__ import annotations

import pytest

from contracts.validate.names import check_label_value
from contracts.workload import Pod
from publisher.gangs.gather import ReadyGang, UnsubmittedPods, assemble
from publisher.gangs.readiness import NotReady
from publisher.gangs.view import View
from tests.builders.pods import waiting_pod


def waiting(name: str, size: str = "1", member: str = "", cpu: int = 1) -> Pod:
    return waiting_pod(
        name, gang="train", size=size, member=member, requests={"cpu": cpu}
    )


def assembled(*pods: Pod) -> ReadyGang | NotReady:
    return assemble(UnsubmittedPods(pods=pods, others=0), View(), lambda _: True)


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
