"""Events are few, and none is missing while what it says holds."""

from __future__ import annotations

from msgspec.structs import replace

from publisher.cluster.event_throttle import CHANGED_S, SAME_S, EventThrottle
from publisher.gangs.notes import Note, Subject

LASTING_S = 3.0
WAITS = Note(
    regarding=Subject(
        api_version="v1", kind="Pod", namespace="default", name="a", uid="1"
    ),
    type="Normal",
    reason="GangDevicesTaken",
    message="0 devices are free",
)
CHANGED = replace(WAITS, message="1 device is free")
OTHER = replace(WAITS, reason="GangOutranked")
HAPPENED = replace(WAITS, reason="Allocated", once=True)


def due(said: EventThrottle, note: Note, now_s: float) -> bool:
    return said.due_in_s(note, now_s) == 0


def test_a_reason_is_told_once_and_again_before_it_is_forgotten() -> None:
    """Kubernetes forgets events, so what holds is repeated in time."""
    said = EventThrottle()
    assert due(said, WAITS, 0)
    said.remember(WAITS, 0)
    assert said.due_in_s(WAITS, 1) == SAME_S - 1
    assert due(said, WAITS, SAME_S)


def test_words_that_change_all_the_time_are_told_seldom() -> None:
    """New words for the same reason wait their time."""
    said = EventThrottle()
    said.remember(WAITS, 0)
    assert said.due_in_s(CHANGED, 1) == CHANGED_S - 1
    assert due(said, CHANGED, CHANGED_S)


def test_another_reason_or_object_is_news() -> None:
    """Only the same reason of the same object is held back."""
    said = EventThrottle()
    said.remember(WAITS, 0)
    assert due(said, OTHER, 0)
    assert due(said, replace(WAITS, regarding=replace(WAITS.regarding, uid="2")), 0)
    said.remember(OTHER, 0)
    assert not due(said, WAITS, 1)


def test_what_is_usually_over_soon_is_told_when_it_stays_the_same() -> None:
    """It must last before anybody hears of it."""
    said, one, two = (
        EventThrottle(),
        replace(WAITS, after_s=LASTING_S),
        replace(CHANGED, after_s=LASTING_S),
    )
    assert said.due_in_s(one, 0) == LASTING_S
    assert said.due_in_s(one, 2) == LASTING_S - 2
    assert said.due_in_s(two, 2) == LASTING_S
    assert due(said, two, 2 + LASTING_S)


def test_what_happened_is_told_once_and_for_all() -> None:
    """What happened next is something else."""
    said = EventThrottle()
    said.remember(HAPPENED, 0)
    assert not due(said, HAPPENED, 10 * SAME_S)
    assert due(said, replace(HAPPENED, message="again"), 0)
