"""How pods ended is known when they are gone, and why Kubernetes ended them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from contracts.pods.membership import read_membership
from contracts.workload import Pod
from publisher.gangs import ended_pods
from publisher.gangs.ended_pods import EndedPods, PodEnd
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.pods import disrupted, waiting_pod
from tests.builders.values import NAMESPACE

TRAIN = GroupKey(NAMESPACE, "train")
KEY = f"{NAMESPACE}/a"


def runner(phase: str = "Running", **fields: Any) -> Pod:
    return waiting_pod(
        "a", gang="train", opened_by=builders.UID, owner="job", phase=phase, **fields
    )


@dataclass
class Seen:
    """A View that is told of one pod."""

    view: View = field(default_factory=View)

    def tell(self, *states: Pod | None) -> PodEnd | None:
        """Tell of these states, one after the other; the end that is known then."""
        for pod in states:
            self.view.apply_pod(KEY, pod)
        ends = self.view.ended.of(TRAIN)
        assert len(ends) < 2
        return ends[0] if ends else None


def test_a_pod_that_runs_has_no_end() -> None:
    assert Seen().tell(runner()) is None


def test_why_a_pod_was_preempted_is_known_when_it_is_gone() -> None:
    end = Seen().tell(runner(), disrupted(runner()), None)
    assert end == PodEnd(
        uid="uid-a",
        name="a",
        gang=builders.UID,
        run="",
        role="",
        maker="job",
        reason="PreemptionByScheduler",
        message="no room",
    )
    assert end.is_disrupted


def test_a_pod_that_is_gone_at_once_said_why_before() -> None:
    """Deleted without grace: no version of it is being deleted."""
    marked = disrupted(runner())
    marked = replace(marked, metadata=replace(marked.metadata, deletion_timestamp=None))
    seen = Seen()
    assert seen.tell(runner(), marked) is None
    end = seen.tell(None)
    assert end is not None
    assert end.is_disrupted


def test_kubelet_ends_a_pod_and_leaves_it() -> None:
    failed = disrupted(runner("Failed"), "TerminationByKubelet")
    failed = replace(failed, metadata=replace(failed.metadata, deletion_timestamp=None))
    end = Seen().tell(runner(), failed)
    assert end is not None
    assert (end.reason, end.has_finished) == ("TerminationByKubelet", False)


def test_what_finished_by_itself_is_deleted_later() -> None:
    for phase in ("Succeeded", "Failed"):
        end = Seen().tell(runner(), runner(phase, version=2), None)
        assert end is not None
        assert end.has_finished
        assert not end.is_disrupted


def test_a_success_outweighs_a_mark_that_came_to_nothing() -> None:
    done = disrupted(runner("Succeeded"))
    done = replace(done, metadata=replace(done.metadata, deletion_timestamp=None))
    end = Seen().tell(done)
    assert end is not None
    assert end.has_finished


def test_a_deleted_pod_neither_finished_nor_was_disrupted() -> None:
    end = Seen().tell(runner(), runner("Failed", version=2, deleting=True), None)
    assert end is not None
    assert not end.has_finished
    assert not end.is_disrupted


def test_it_may_be_said_while_a_pod_is_being_deleted() -> None:
    deleting = runner(version=2, deleting=True)
    end = Seen().tell(runner(), deleting, disrupted(deleting))
    assert end is not None
    assert end.is_disrupted


def test_another_pod_of_the_name_tells_that_the_first_is_gone() -> None:
    end = Seen().tell(runner(), runner(uid="another", version=2))
    assert end is not None
    assert end.uid == "uid-a"


def test_pods_at_the_gate_never_ran() -> None:
    gated = waiting_pod("a", gang="train")
    assert Seen().tell(gated, disrupted(gated), None) is None


def test_the_oldest_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_pods, "_KEPT", 2)
    ends: EndedPods[str] = EndedPods()
    for name in ("a", "b", "c"):
        pod = waiting_pod(name, opened_by=builders.UID)
        found = read_membership(pod)
        ends.note("one" if name == "a" else "two", found, pod, has_ended=False)
    assert ends.of("one") == ()
    assert [end.name for end in ends.of("two")] == ["b", "c"]
