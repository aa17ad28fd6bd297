"""What was written for waiting pods is taken back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.names import VOID
from contracts.workload import Pod
from publisher.gangs.patches import Purpose
from publisher.gangs.rollback import (
    find_withdrawn,
    is_leftover,
    plan_undo,
    plan_withdrawal,
)
from tests import builders
from tests.builders.plans import gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
FREE = real_claim("a-gpus")
OURS = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])


KEY = f"{builders.NAMESPACE}/a-gpus"
MARKED = waiting_pod(
    "a", gang="train", templates=["gpus"], annotations={VOID: builders.UID}
)
RECORD = record_of(submission_of((POD,)))


def test_a_leftover_is_what_we_wrote_for_waiting_pods_alone() -> None:
    """Not what is free, what others wrote, and what is for somebody else as well."""
    waiting = {"uid-a"}
    assert is_leftover(KEY, waiting, view_of([POD], [OURS]))
    assert not is_leftover(KEY, waiting, view_of([POD], [FREE]))
    assert not is_leftover(KEY, waiting, view_of([POD]))
    theirs = real_claim(
        "a-gpus", allocated=builders.allocation(), reserved=["a"], managed=False
    )
    assert not is_leftover(KEY, waiting, view_of([POD], [theirs]))
    shared = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a", "b"])
    assert not is_leftover(KEY, waiting, view_of([POD], [shared]))


def test_a_claim_of_a_pod_beyond_the_gate_is_no_leftover() -> None:
    """Even while its reservation is gone for a moment."""
    bare = real_claim("c", allocated=builders.allocation())
    key = f"{builders.NAMESPACE}/c"
    waiting = waiting_pod("a", shared={"gpus": "c"})
    running = waiting_pod("b", shared={"gpus": "c"}, opened_by="uid-gang")
    assert is_leftover(key, {"uid-a"}, view_of([waiting], [bare]))
    assert not is_leftover(key, {"uid-a"}, view_of([waiting, running], [bare]))


def test_an_immediate_claim_is_no_leftover() -> None:
    assert not is_leftover(KEY, {"uid-a"}, view_of([POD], [builders.labelled(OURS)]))


def group_user(name: str, phase: str = "Running", **fields: Any) -> Pod:
    """Make a pod that uses the claim of a PodGroup."""
    return waiting_pod(name, shared={"gpus": "pg"}, phase=phase, **fields)


BOUND: dict[str, Any] = {
    "opened_by": "uid-gang",
    "node": builders.NODE,
    "deleting": True,
}
GROUPS = real_claim("pg", allocated=builders.allocation(), pod_group="pg")


@pytest.mark.parametrize(
    ("other", "frees"),
    [
        (group_user("b", **BOUND), False),
        (group_user("b", "Succeeded", **BOUND), True),
        (group_user("b", "Pending", opened_by="uid-gang", deleting=True), True),
    ],
)
def test_a_claim_of_a_pod_group_is_kept_for_a_pod_in_its_grace_period(
    other: Pod, *, frees: bool
) -> None:
    """No reservation names it: it runs until it has ended."""
    waiting = group_user("a", "Pending")
    view = view_of([waiting, other], [GROUPS])
    assert bool(list(plan_undo([waiting], view))) is frees


def test_a_claim_shared_with_a_pod_in_its_grace_period_is_kept() -> None:
    """Though the gang that asked for it knows the pod as gone."""
    waiting, other = group_user("a", "Pending"), group_user("b", **BOUND)
    shared = real_claim("pg", allocated=builders.allocation(), reserved=["a", "b"])
    view = view_of([waiting, other], [shared])
    assert list(plan_undo([waiting], view, {"uid-b"})) == []


def test_a_claim_of_a_pod_group_is_kept_for_pods_that_are_not_ours() -> None:
    """They never had our gate; when one ends, those that share its claim are told."""
    waiting, stranger = group_user("a", "Pending"), group_user("b", node=builders.NODE)
    stranger = replace(stranger, spec=replace(stranger.spec, scheduling_gates=()))
    view = view_of([waiting, stranger], [GROUPS])
    assert list(plan_undo([waiting], view)) == []
    (group,) = view.groups()
    ended = replace(stranger, status=replace(stranger.status, phase="Failed"))
    assert view.apply_pod(f"{builders.NAMESPACE}/b", ended) == {group}
    assert [patch.name for patch in plan_undo([waiting], view)] == ["pg"]


def test_pods_are_marked_before_their_claims_are_freed() -> None:
    """And claims are freed only once every pod is marked."""
    first = plan_withdrawal(gang_of(RECORD, POD), [POD], view_of([POD], [OURS]))
    assert [patch.purpose for patch in first] == [Purpose.WITHDRAW]
    then = plan_withdrawal(gang_of(RECORD, MARKED), [MARKED], view_of([MARKED], [OURS]))
    assert [(patch.purpose, patch.key) for patch in then] == [(Purpose.CLEAR, KEY)]


def test_where_nothing_was_written_nothing_is_taken_back() -> None:
    """Nobody will open a gate for it."""
    assert plan_withdrawal(gang_of(RECORD, POD), [POD], view_of([POD], [FREE])) == []


def test_what_pods_that_are_gone_shared_is_freed_too() -> None:
    """A reservation for a pod that is no more keeps nothing."""
    both = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a", "b"])
    view = view_of([POD], [both])
    assert list(plan_undo([POD], view)) == []
    assert [patch.key for patch in plan_undo([POD], view, {"uid-b"})] == [KEY]


def is_withdrawn(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a pod with this claim is no part of its gang any more."""
    return bool(find_withdrawn(gang_of(RECORD, pod), view_of([pod], [claim])))


def test_a_pod_is_withdrawn_once_it_is_marked_and_holds_nothing() -> None:
    """Either alone is not enough: it would be asked for twice."""
    assert is_withdrawn(MARKED, FREE)
    assert not is_withdrawn(MARKED, OURS)
    assert not is_withdrawn(POD, FREE)
