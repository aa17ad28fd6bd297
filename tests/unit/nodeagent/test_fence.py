"""Which of two agents is the newer one."""

from __future__ import annotations

import pytest

from nodeagent.fence import is_newer, make_incarnation

UNIQUE = "00000000-0000-4000-8000-00000000000"
OLD, NEW = (make_incarnation(at, f"{UNIQUE}{at % 10}") for at in (9, 10**18))


def test_who_started_later_is_newer() -> None:
    """As numbers, not as texts of any length; nobody is newer than itself."""
    assert is_newer(NEW, OLD)
    assert not is_newer(OLD, NEW)
    assert not is_newer(OLD, OLD)


@pytest.mark.parametrize("other", ["", "z", f"{'9' * 20}", f"{'9' * 21}-{UNIQUE}0"])
def test_what_cannot_be_read_is_not_newer(other: str) -> None:
    """So that no words on the bus silence an agent."""
    assert not is_newer(other, OLD)
