"""What follows from the phase of a gang."""

from __future__ import annotations

from contracts.gang import GangPhase


def test_a_gang_that_is_over_holds_nothing() -> None:
    """Devices are held from the decision on until the end, and never after it."""
    holding = {phase for phase in GangPhase if phase.holds_devices}
    over = {phase for phase in GangPhase if phase.is_terminal}
    assert holding == {GangPhase.DECIDED, GangPhase.ALLOCATED}
    assert over == {GangPhase.COMPLETED, GangPhase.CANCELLED, GangPhase.REJECTED}
    assert not holding & over
