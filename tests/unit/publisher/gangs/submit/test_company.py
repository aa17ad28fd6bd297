"""Which pods count beside those that wait."""

from __future__ import annotations

from contracts.gang import GangPhase
from contracts.messages import GatesOpened
from contracts.workload import Pod
from publisher.gangs.records import PodGangRecord
from publisher.gangs.submit.company import find_company
from tests.builders.decisions import gang_allocated
from tests.builders.plans import (
    record_of,
    submission_of,
)
from tests.builders.pods import waiting_pod
from tests.builders.values import UID

A, B = "uid-a", "uid-b"


def pod(name: str, phase: str = "Pending", *, opened: bool = False) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        phase=phase,
        opened_by="g" if opened else "",
    )


def running_gang(*pods: Pod, opened: int) -> PodGangRecord:
    submission, decision = submission_of(pods), gang_allocated(pods=len(pods))
    said = GatesOpened(
        cluster=decision.cluster,
        namespace=decision.namespace,
        uid=decision.uid,
        attempt=1,
        state=1,
        pods=opened,
    )
    record = record_of(submission, decision, said)
    assert record.phase is GangPhase.RUNNING
    return record


def test_pods_that_run_count_and_those_that_failed_do_not() -> None:
    waiting = [pod("c")]
    others = [pod("a", "Running", opened=True), pod("b", "Failed", opened=True)]
    assert find_company([*waiting, *others], waiting).count == 1


def test_who_only_waits_counts_for_nobody() -> None:
    """Whatever was submitted for it: nothing of the gang runs."""
    waiting, asked = [pod("a")], pod("b")
    assert find_company([*waiting, asked], waiting, [B]).count == 0
    held = find_company([*waiting, asked], waiting, [B], held=[B]).held
    assert held == 1


def test_who_is_asked_for_stands_in_for_one_that_ran() -> None:
    """Two replacements of two that failed: the second does not wait for the first."""
    ran = [pod(name, "Failed", opened=True) for name in ("c", "d")]
    more = [pod("f"), pod("g")]
    pods = [pod("a"), pod("b"), *ran, *more, pod("e", "Running", opened=True)]
    assert find_company(pods, [pod("a")], [B]).count == 2
    assert find_company(pods, [pod("a")], [B, "uid-f", "uid-g"]).count == 3
    assert find_company(pods[:2] + pods[-1:], [pod("a")], [B]).count == 1


def test_a_pod_that_ends_while_it_is_deleted_has_not_done_its_work() -> None:
    """It is called a success when its containers end well, and is made anew."""
    leaving = waiting_pod("b", opened_by="g", phase="Succeeded", deleting=True)
    assert find_company([pod("a"), leaving], [pod("a")]).count == 0


def test_pods_that_are_gone_of_a_gang_that_runs_had_their_turn() -> None:
    first = waiting_pod("a", gang="train", templates=["gpus"], opened_by=UID)
    second, again = pod("b"), pod("c")
    record = running_gang(first, second, opened=2)
    assert find_company([first, again], [again], (), [record]).count == 2
    ended = record_of(submission_of((first, second)))
    assert find_company([first, again], [again], (), [ended]).count == 1


def test_a_pod_that_was_gone_before_its_gate_opened_never_ran() -> None:
    first = waiting_pod("a", gang="train", templates=["gpus"], opened_by=UID)
    record = running_gang(first, pod("b"), opened=1)
    assert find_company([first, pod("c")], [pod("c")], (), [record]).count == 1
