"""kube-scheduler refuses a pinned pod: what counts as that, and since when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.workload import Pod, PodSchedulingGate
from publisher.gangs.running.refusals import SeenRefusals, find_refusal
from tests.builders.pods import refused_pod, waiting_pod


def test_it_is_told_with_its_own_words() -> None:
    refusal = find_refusal(refused_pod("a", "node-1", message="0/2 nodes"))
    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("Unschedulable", "0/2 nodes")


def test_another_scheduler_has_reasons_of_its_own() -> None:
    assert find_refusal(refused_pod("a", "node-1", reason="SchedulerError")) is not None


def gated_by_its_author() -> Pod:
    pod = refused_pod("a", "node-1")
    gates = (PodSchedulingGate(name="example.com/later"),)
    return replace(pod, spec=replace(pod.spec, scheduling_gates=gates))


@pytest.mark.parametrize(
    "pod",
    [
        refused_pod("a", "node-1", reason="SchedulingGated"),
        refused_pod("a", "node-1", nominated="node-1"),
        refused_pod("a", "node-1", node="node-1"),
        refused_pod("a", "node-1", phase="Failed"),
        refused_pod("a", "node-1", opened_by=""),
        gated_by_its_author(),
        waiting_pod("a", opened_by="gang"),
    ],
    ids=[
        "the gate was opened a moment ago",
        "room is being made",
        "bound",
        "over",
        "not opened by us",
        "another gate",
        "not tried yet",
    ],
)
def test_what_passes_is_no_refusal(pod: Pod) -> None:
    assert find_refusal(pod) is None


def test_it_counts_from_when_it_was_first_seen() -> None:
    """The words of the condition may change meanwhile."""
    seen, pod = SeenRefusals(), refused_pod("a", "node-1")
    seen.apply("uid-a", pod, "2026-11-20T12:00:00Z")
    seen.apply("uid-a", refused_pod("a", "node-1", message="x"), "2026-11-20T12:00:09Z")
    assert seen.since("uid-a") == "2026-11-20T12:00:00Z"
    assert seen.since("uid-b") == ""


def test_what_was_tried_again_begins_anew() -> None:
    seen, pod = SeenRefusals(), refused_pod("a", "node-1")
    for pause in (refused_pod("a", "node-1", nominated="node-1"), None):
        seen.apply("uid-a", pod, "2026-11-20T12:00:00Z")
        seen.apply("uid-a", pause, "2026-11-20T12:00:05Z")
        assert seen.since("uid-a") == ""
