"""The doctor's findings: one line a check, with its reason and its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from moorings.doctor.facts import Unread


class Level(StrEnum):
    """How bad it is: `fail` does not work, `warn` may not, or could not be seen."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class CheckLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """The finding of one check."""

    level: Level
    check: str
    """Its name in docs/doctor.md, such as `nats.replicas`."""
    why: str
    remedy: str = ""
    """What to do; empty if ok."""


class Diagnosis(Struct, frozen=True, kw_only=True, rename="camel"):
    """All lines; the shape of `-o json`."""

    kind: str = "Diagnosis"
    checks: tuple[CheckLine, ...]
    failures: int
    warnings: int

    @classmethod
    def of(cls, lines: Iterable[CheckLine]) -> Diagnosis:
        """Count what is not ok."""
        checks = tuple(lines)
        levels = [line.level for line in checks]
        return cls(
            checks=checks,
            failures=levels.count(Level.FAIL),
            warnings=levels.count(Level.WARN),
        )


def ok(check: str, why: str) -> CheckLine:
    """Make the line of a check that found nothing wrong."""
    return CheckLine(level=Level.OK, check=check, why=why)


def warn(check: str, why: str, remedy: str) -> CheckLine:
    """Make the line of what may not work, or not for long."""
    return CheckLine(level=Level.WARN, check=check, why=why, remedy=remedy)


def fail(check: str, why: str, remedy: str) -> CheckLine:
    """Make the line of what does not work."""
    return CheckLine(level=Level.FAIL, check=check, why=why, remedy=remedy)


def unread(check: str, reading: Unread) -> CheckLine:
    """Make the line of a check that could not read its facts; never ok."""
    return warn(
        check, f"unknown: {reading.why}", reading.remedy or "let this user read it"
    )
