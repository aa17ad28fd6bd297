"""Pods that come after their gang was decided each get one place of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contracts.claim import ResourceClaim
from contracts.names import INDEX
from contracts.workload import Pod
from publisher.gangs.bind_pods import Places, bind_pods
from publisher.gangs.readiness import NotReady
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import view_of
from tests.builders.pods import real_claim, waiting_pod

GANG = builders.gang(builders.member(builders.member_claim(), count=2))
DECISION = gang_allocated(pods=2)


def worker(name: str) -> Pod:
    return waiting_pod(name, gang="train", templates=["gpus"])


def bound(
    waiting: Sequence[Pod],
    claims: Iterable[ResourceClaim] = (),
    opened: Sequence[Pod] = (),
) -> Places | NotReady:
    free = [real_claim(f"{pod.metadata.name}-gpus") for pod in waiting]
    view = view_of([*waiting, *opened], [*free, *claims])
    return bind_pods(
        DECISION, GANG, opened=opened, waiting=waiting, view=view, owns=lambda _: True
    )


def names(places: Places | NotReady) -> list[str]:
    assert isinstance(places, dict)
    return ["".join(p.name for p in place.pods) for place in places["worker"]]


def reason(places: Places | NotReady) -> str:
    assert isinstance(places, NotReady)
    return places.reason


def test_pods_get_their_places_in_their_order() -> None:
    places = bound([worker("a"), worker("b")])
    assert names(places) == ["a", "b"]
    assert isinstance(places, dict)
    assert [place.claims for place in places["worker"]] == [("a-gpus",), ("b-gpus",)]


def test_nothing_begins_before_all_are_there() -> None:
    assert reason(bound([worker("a")])) == "PodsMissing"


def test_who_holds_what_was_decided_keeps_it() -> None:
    """Somebody wrote it before this publisher came."""
    held = DECISION.members[1].claims[0].allocation
    pods = [worker("a"), worker("b")]
    claim = real_claim("a-gpus", allocated=held, reserved=["a"], version=2)
    assert names(bound(pods, [claim])) == ["b", "a"]


def test_who_runs_keeps_its_place_and_who_is_gone_leaves_it_empty() -> None:
    running = waiting_pod(
        "a",
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        annotations={INDEX: "worker/1"},
    )
    claim = real_claim("a-gpus")
    assert names(bound([], [claim], [running])) == ["", "a"]
    assert names(bound([worker("b")], [claim], [running])) == ["b", "a"]


def test_pods_that_the_gang_does_not_say_wait() -> None:
    other = waiting_pod("b", gang="train", templates=["nic"])
    assert reason(bound([worker("a"), other], [real_claim("b-nic")])) == "ClaimsDiffer"
    shared = [
        waiting_pod(name, gang="train", shared={"gpus": "one"}) for name in ("a", "b")
    ]
    assert reason(bound(shared, [real_claim("one")])) == "ClaimsDiffer"
    assert reason(bound([waiting_pod("c", gang="train", shared={"gpus": "no"})])) == (
        "ClaimsMissing"
    )
