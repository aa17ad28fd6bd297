"""Events are few, and none is missing while what it says holds."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.meta import ObjectMeta
from publisher.cluster.plan_status import Note
from publisher.cluster.said import CHANGED_S, SAME_S, Said

WAITS = Note(
    kind="Pod",
    about=ObjectMeta(name="a", uid="1"),
    type="Normal",
    reason="GangDevicesTaken",
    message="0 devices are free",
)
CHANGED = replace(WAITS, message="1 device is free")
OTHER = replace(WAITS, reason="GangOutranked")
HAPPENED = replace(WAITS, reason="Allocated", once=True)


def test_a_reason_is_told_once_and_again_before_it_is_forgotten() -> None:
    said = Said()
    assert said.is_due(WAITS, 0)
    said.remember(WAITS, 0)
    assert not said.is_due(WAITS, SAME_S - 1)
    assert said.is_due(WAITS, SAME_S)


def test_words_that_change_all_the_time_are_told_seldom() -> None:
    said = Said()
    said.remember(WAITS, 0)
    assert not said.is_due(CHANGED, CHANGED_S - 1)
    assert said.is_due(CHANGED, CHANGED_S)


def test_another_reason_or_object_is_news() -> None:
    said = Said()
    said.remember(WAITS, 0)
    assert said.is_due(OTHER, 0)
    assert said.is_due(replace(WAITS, about=ObjectMeta(name="a", uid="2")), 0)
    said.remember(OTHER, 0)
    assert not said.is_due(WAITS, 1)


def test_what_happened_is_told_once_and_for_all() -> None:
    """What happened next is something else."""
    said = Said()
    said.remember(HAPPENED, 0)
    assert not said.is_due(HAPPENED, 10 * SAME_S)
    assert said.is_due(replace(HAPPENED, message="again"), 0)
