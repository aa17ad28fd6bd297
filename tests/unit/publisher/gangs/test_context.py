"""Which pods of a gang wait, run, were withdrawn, or are gone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.names import VOID
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, SubmittedGang, add_up
from publisher.gangs.view import View
from tests import builders
from tests.builders.plans import context_of, record_of, submission_of, view_of
from tests.builders.pods import waiting_pod


def pod(name: str, **fields: Any) -> Pod:
    """Make a pod of the gang `train`."""
    return waiting_pod(name, gang="train", templates=["gpus"], **fields)


GATED = pod("a")
MARKED = pod("b", annotations={VOID: builders.UID})
OPENED = pod("c", opened_by=builders.UID)
TAKEN = pod("d", opened_by="uid-other")
ENDED = pod("e", phase="Failed")
ALL = (GATED, MARKED, OPENED, TAKEN, ENDED)
GONE = pod("f")
GANG = SubmittedGang(
    record=record_of(submission_of((*ALL, GONE))),
    pods=ALL,
    opened=(OPENED,),
    requested=ALL,
)


def test_a_pod_waits_while_it_is_gated_and_not_over() -> None:
    """What has ended at the gate waits for nothing."""
    assert GANG.waiting == (GATED, MARKED)


def test_a_withdrawn_pod_waits_for_another_gang() -> None:
    """It is entitled to nothing of this one."""
    assert GANG.entitled == (GATED,)


def test_a_displaced_pod_runs_for_another_gang() -> None:
    """The annotation says by whom its gate was opened."""
    assert GANG.displaced == (TAKEN,)


def test_who_ended_is_gone_like_who_is_not_there() -> None:
    """The gang does not get it back."""
    assert GANG.gone_uids == {"uid-e", "uid-f"}


def test_alive_is_who_runs_or_will_each_once() -> None:
    """Also where a pod was opened for it and is its own."""
    assert {each.metadata.uid for each in GANG.alive} == {"uid-a", "uid-c", "uid-d"}
    both = replace(GANG, opened=(OPENED, ENDED))
    assert len(both.alive) == 3


def test_messages_name_a_gang_by_cluster_namespace_and_uid() -> None:
    """As the subjects of the bus do."""
    context = context_of(view_of(), GANG.record)
    address = context.address(GANG.record)
    assert address == {
        "cluster": context.cluster,
        "namespace": builders.NAMESPACE,
        "uid": builders.UID,
    }


def test_steps_are_added_up_in_their_order() -> None:
    """Sets are united, the earliest look counts, and a gang is made anew once."""
    first = NextSteps(removals=(GATED,), kept=frozenset("a"), look_again_s=9.0)
    second = NextSteps(removals=(OPENED,), kept=frozenset("b"), recreations=1)
    third = NextSteps(look_again_s=2.0, recreations=1)
    assert add_up((first, second, third)) == first + second + third
    assert first + second + third == NextSteps(
        removals=(GATED, OPENED),
        kept=frozenset("ab"),
        recreations=1,
        look_again_s=2.0,
    )
    assert add_up(()) == NextSteps()


def test_a_look_asks_the_view_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes later is seen by the next look."""
    view = view_of([GATED])
    context = context_of(view)
    assert context.pods == (GATED,)
    monkeypatch.setattr(View, "pods", None)
    assert context.pods == (GATED,)


def test_of_which_gang_a_pod_is_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_of(view_of([GATED]))
    membership = context.membership(GATED)
    monkeypatch.setattr(View, "membership", None)
    assert context.membership(GATED) is membership
