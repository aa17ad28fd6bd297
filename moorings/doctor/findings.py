"""What the doctor says: one line a check, with its reason and its remedy."""

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
    """What one check found."""

    level: Level
    check: str
    """Its name in docs/doctor.md, such as `nats.replicas`."""
    why: str
    remedy: str = ""
    """What to do; empty where it is ok."""


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
    """Say that a check found nothing wrong."""
    return CheckLine(level=Level.OK, check=check, why=why)


def warn(check: str, why: str, remedy: str) -> CheckLine:
    """Say what may not work, or only for now."""
    return CheckLine(level=Level.WARN, check=check, why=why, remedy=remedy)


def fail(check: str, why: str, remedy: str) -> CheckLine:
    """Say what does not work."""
    return CheckLine(level=Level.FAIL, check=check, why=why, remedy=remedy)


def unread(check: str, reading: Unread) -> CheckLine:
    """Say that a check could not look, which is never ok."""
    return warn(
        check, f"unknown: {reading.why}", reading.remedy or "let this user read it"
    )
