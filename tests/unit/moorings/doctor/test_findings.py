"""Lines, counts and names."""

from __future__ import annotations

from moorings.doctor.facts import Unread
from moorings.doctor.findings import Diagnosis, fail, ok, unread, warn


def test_what_is_not_ok_is_counted() -> None:
    lines = (ok("a", ""), warn("b", "", "do"), fail("c", "", "do"), fail("d", "", "do"))
    result = Diagnosis.of(lines)
    assert (result.failures, result.warnings) == (2, 1)
    assert result.checks == lines


def test_what_could_not_be_read_is_a_warning_with_its_remedy() -> None:
    line = unread("a", Unread("forbidden"))
    assert (line.level, line.why) == ("warn", "unknown: forbidden")
    assert line.remedy
    assert unread("a", Unread("x", "give it")).remedy == "give it"
