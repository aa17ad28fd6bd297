"""A Gang object and its pods must say the same."""

from __future__ import annotations

import pytest

from contracts.gang import Gang
from contracts.workload import Pod
from publisher.gangs.members import default_member_of, member_name_of
from publisher.gangs.submit.compare import find_difference
from tests import builders
from tests.builders.plans import context_of, view_of
from tests.builders.pods import real_claim, waiting_pod


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
    return find_difference(gang, pods, context_of(view), whole=whole)


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
