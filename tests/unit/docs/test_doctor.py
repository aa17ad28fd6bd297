"""docs/doctor.md names the checks that there are."""

from __future__ import annotations

import re
from pathlib import Path

from moorings.doctor.rights import ACCOUNTS

ROOT = Path(__file__).parents[3]
AREAS = "kubernetes|controller-manager|scheduler|rights|parts|clock|nodes|pools|nats"
QUOTED = re.compile(rf'"((?:{AREAS})\.[a-z-]+)"')
FORMATTED = {f"rights.{account}" for account in ACCOUNTS} | {
    "rights",
    "scheduler.limits",
}
"""Made of a name, or of an area alone."""


def test_every_check_has_its_row_and_every_row_its_check() -> None:
    sources = (ROOT / "moorings" / "doctor").glob("*.py")
    made = {name for path in sources for name in QUOTED.findall(path.read_text())}
    rows = (ROOT / "docs" / "doctor.md").read_text().splitlines()
    firsts = [row.split("|")[1] for row in rows if row.startswith("| `")]
    written = {name for cell in firsts for name in re.findall("`([^`]+)`", cell)}
    assert written == made | FORMATTED
