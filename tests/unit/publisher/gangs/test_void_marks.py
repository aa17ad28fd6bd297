"""A mark on a pod at our gate keeps it closed for what was given up."""

from __future__ import annotations

import pytest

from contracts.ids import GangUID
from contracts.names import VOID
from contracts.workload import Pod
from publisher.gangs.void_marks import add_void_mark, is_void
from tests.builders.pods import waiting_pod

ONE, OTHER = GangUID("uid-one"), GangUID("uid-other")


def marked(marks: str) -> Pod:
    """Make a pod with these marks."""
    return waiting_pod(annotations={VOID: marks})


def test_a_mark_without_an_attempt_is_for_good() -> None:
    """It holds for every attempt of that gang, and for no other gang."""
    pod = marked("uid-one")
    assert is_void(pod, ONE)
    assert is_void(pod, ONE, attempt=7)
    assert not is_void(pod, OTHER)
    assert not is_void(waiting_pod(), ONE)


def test_a_mark_of_an_attempt_holds_for_those_up_to_it() -> None:
    """A later attempt may open the gate, and the gang goes on."""
    pod = marked("uid-one/2")
    assert is_void(pod, ONE, attempt=1)
    assert is_void(pod, ONE, attempt=2)
    assert not is_void(pod, ONE, attempt=3)
    assert not is_void(pod, ONE)


def test_what_others_wrote_there_is_no_mark() -> None:
    """A number that is none, or of no gang, withdraws nothing."""
    assert not is_void(marked("uid-one/x"), ONE, attempt=1)
    assert not is_void(marked("/1"), ONE, attempt=1)


@pytest.mark.parametrize(
    "number", ["9" * 5000, "9" * 11, "1002", "-1", "²", "٣", "1_0"]
)
def test_a_number_that_we_never_wrote_is_no_mark(number: str) -> None:
    """The annotation is the author's: more digits than Python reads are no number."""
    assert not is_void(marked(f"uid-one/{number}"), ONE, attempt=1)
    assert is_void(marked(f"uid-one/{number} uid-one/1001"), ONE, attempt=1)


def test_a_gang_has_one_mark() -> None:
    """The new one replaces the old; those of other gangs stay."""
    pod = marked("uid-one/1 uid-other")
    assert add_void_mark(pod, ONE, 2) == "uid-other uid-one/2"
    assert add_void_mark(pod, ONE) == "uid-other uid-one"


def test_marks_are_not_kept_without_end() -> None:
    """An annotation has limits: the oldest marks go first."""
    pod = marked(" ".join(f"uid-{number}" for number in range(50)))
    marks = add_void_mark(pod, ONE).split()
    assert marks[-1] == ONE
    assert marks[0] == "uid-30"
    assert len(marks) == 21
