"""Which pods count beside those that wait."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.workload import Pod
from publisher.gangs.records import PodGangRecord
from publisher.gangs.submit.company import find_company
from tests.builders.plans import (
    opened_record_of,
    record_of,
    submission_of,
)
from tests.builders.pods import waiting_pod
from tests.builders.values import UID

A, B = "uid-a", "uid-b"


def pod(
    name: str, phase: str = "Pending", *, opened: bool = False, by: str = "g"
) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        phase=phase,
        opened_by=by if opened else "",
    )


def running_gang(
    *pods: Pod, opened: int, uid: str = UID, restores: int = 0
) -> PodGangRecord:
    submission = replace(submission_of(pods), uid=GangUID(uid), restores=restores)
    record = opened_record_of(submission, opened=opened)
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


# --- pods that a running gang has lost ------------------------------------------------

ABC = [pod(name, "Running", opened=True, by=UID) for name in "abc"]
NEW = [pod("e")]


def size_and_lost(
    pods: list[Pod], *records: PodGangRecord, asked: tuple[str, ...] = ()
) -> tuple[int, int]:
    company = find_company([*pods, *NEW], NEW, asked, records)
    return company.size, company.lost


def test_a_gang_has_lost_pods_that_failed_or_are_gone() -> None:
    """Whatever it was decided with: pods beyond that are new."""
    three = running_gang(*ABC, opened=3)
    failed = pod("c", "Failed", opened=True, by=UID)
    done = pod("c", "Succeeded", opened=True, by=UID)
    assert size_and_lost(ABC, three) == (3, 0)
    assert size_and_lost(ABC[:2], three) == (3, 1)
    assert size_and_lost([*ABC[:2], failed], three) == (3, 1)
    assert size_and_lost([*ABC[:2], done], three) == (3, 0)
    assert size_and_lost(ABC[:2]) == (0, 0)
    # One was gone before it was confirmed that all gates were open.
    assert size_and_lost(ABC[:2], running_gang(*ABC, opened=2)) == (3, 1)


def test_a_gang_that_does_not_run_has_lost_nothing() -> None:
    three = running_gang(*ABC, opened=3)
    assert size_and_lost([], three) == (0, 0)


def test_who_was_asked_for_in_the_place_of_another_takes_it() -> None:
    """While it waits, and once it runs; pods by which the gang grows do not."""
    three, waits = running_gang(*ABC, opened=3), pod("d")
    again = running_gang(waits, opened=1, uid="again", restores=3)
    more = running_gang(waits, opened=1, uid="more")
    uid_of_d = waits.metadata.uid
    assert size_and_lost([*ABC[:2], waits], three, again, asked=(uid_of_d,)) == (3, 0)
    assert size_and_lost([*ABC[:2], waits], three, more, asked=(uid_of_d,)) == (3, 1)
    runs = pod("d", "Running", opened=True, by="again")
    assert size_and_lost([*ABC[:2], runs], three, again) == (3, 0)
    runs = pod("d", "Running", opened=True, by="more")
    assert size_and_lost([*ABC[:2], runs], three, more) == (4, 1)


def test_a_gang_is_as_large_as_it_was_when_all_of_its_first_pods_are_gone() -> None:
    """The submissions of those in their place say so."""
    again = running_gang(pod("d"), opened=1, uid="again", restores=3)
    runs = pod("d", "Running", opened=True, by="again")
    assert size_and_lost([runs], again) == (3, 2)


def test_a_pod_without_our_mark_runs_all_the_same() -> None:
    """Whoever takes the mark off has lost nothing by that."""
    three = running_gang(*ABC, opened=3)
    unmarked = [pod(name, "Running", opened=True, by="?") for name in "bc"]
    assert size_and_lost([ABC[0], *unmarked], three) == (3, 0)
