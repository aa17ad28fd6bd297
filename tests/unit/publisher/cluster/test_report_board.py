"""Only what lasts is shown, and what another publisher found until we have looked."""

from __future__ import annotations

from contracts.reports import WAITING, PodsReport
from publisher.cluster.report_board import SETTLE_S, Notice, ReportBoard
from publisher.gangs.view import GroupKey

TRAIN = GroupKey("team", "train")
MISSING = (PodsReport(phase=WAITING, reason="PodsMissing", message="3 of 4"),)
FEWER = (PodsReport(phase=WAITING, reason="PodsMissing", message="2 of 4"),)
DIFFER = (PodsReport(phase=WAITING, reason="ClaimsDiffer"),)


def test_what_is_over_soon_is_never_shown() -> None:
    board = ReportBoard()
    board.note(TRAIN, MISSING, 0.0, "a")
    assert list(board.take(SETTLE_S - 0.1)) == []
    board.note(TRAIN, DIFFER, SETTLE_S - 0.1, "b")
    assert list(board.take(SETTLE_S + 0.1)) == []
    board.note(TRAIN, (), SETTLE_S + 0.2, "c")
    assert list(board.take(SETTLE_S + 0.2)) == [(TRAIN, None)]
    assert list(board.take(100.0)) == []


def test_what_lasts_is_shown_since_its_reasons_are_these() -> None:
    """New words of the same reasons are shown soon, and are as old as those."""
    board = ReportBoard()
    board.note(TRAIN, MISSING, 0.0, "a")
    board.note(TRAIN, FEWER, SETTLE_S - 1, "b")
    assert list(board.take(SETTLE_S)) == [(TRAIN, Notice(FEWER, "a"))]
    board.note(TRAIN, FEWER, SETTLE_S + 1, "c")
    assert list(board.take(100.0)) == []
    board.note(TRAIN, MISSING, 100.0, "d")
    assert list(board.take(100.0 + SETTLE_S)) == [(TRAIN, Notice(MISSING, "a"))]


def test_what_another_publisher_found_holds_until_we_have_looked() -> None:
    """And is taken down at once when we find nothing."""
    board, found = ReportBoard(), Notice(MISSING, "before")
    assert board.adopt(TRAIN, found)
    board.note(TRAIN, FEWER, 0.0, "a")
    assert list(board.take(SETTLE_S)) == [(TRAIN, Notice(FEWER, "before"))]
    board.note(TRAIN, (), SETTLE_S, "b")
    assert list(board.take(SETTLE_S)) == [(TRAIN, None)]


def test_what_we_have_looked_at_is_not_adopted() -> None:
    """Not when all was well, and nothing once adoption has ended."""
    board, found = ReportBoard(), Notice(MISSING, "before")
    board.note(TRAIN, (), 0.0, "a")
    assert not board.adopt(TRAIN, found)
    board.end_adoption()
    assert not board.adopt(GroupKey("team", "other"), found)
    assert list(board.take(100.0)) == []
