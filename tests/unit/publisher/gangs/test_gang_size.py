"""Which pods count beside those that wait, so that a gang is whole."""

from __future__ import annotations

from contracts.gang import GangPhase
from contracts.messages import GatesOpened
from contracts.workload import Pod
from publisher.gangs.gang_size import count_others
from publisher.gangs.records import PodGangRecord
from tests.builders.decisions import gang_allocated
from tests.builders.plans import record_of, submission_of
from tests.builders.pods import waiting_pod


def pod(name: str, phase: str = "Pending", *, opened: bool = False) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        phase=phase,
        opened_by="g" if opened else "",
    )


def running_gang(*pods: Pod) -> PodGangRecord:
    submission, decision = submission_of(pods), gang_allocated(pods=len(pods))
    opened = GatesOpened(
        cluster=decision.cluster,
        namespace=decision.namespace,
        uid=decision.uid,
        attempt=1,
        state=1,
    )
    record = record_of(submission, decision, opened)
    assert record.phase is GangPhase.RUNNING
    return record


def test_pods_that_run_count_and_those_that_failed_do_not() -> None:
    waiting = [pod("c")]
    others = [pod("a", "Running", opened=True), pod("b", "Failed", opened=True)]
    assert count_others([*waiting, *others], waiting, (), ()) == 1


def test_pods_that_wait_for_nothing_do_not_count() -> None:
    waiting, idle = [pod("a")], pod("b")
    assert count_others([*waiting, idle], waiting, ["uid-b"], ()) == 0


def test_pods_that_are_gone_of_a_gang_that_runs_had_their_turn() -> None:
    first, second = pod("a", "Running", opened=True), pod("b", opened=True)
    record = running_gang(first, second)
    again = pod("c")
    assert count_others([first, again], [again], (), [record]) == 2
    ended = record_of(submission_of((first, second)))
    assert count_others([first, again], [again], (), [ended]) == 1
