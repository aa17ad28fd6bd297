"""Where a message stands in its stream."""

from __future__ import annotations

import pytest

from runtime.bus.consumer import Position, read_position


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK.STATE.name.1.42.7.1500000000.3",
        "$JS.ACK.hub.account.STATE.name.1.42.7.1500000000.3",
        "$JS.ACK.hub.account.STATE.name.1.42.7.1500000000.3.token",
    ],
)
def test_both_forms_of_reply_subjects_are_read(reply: str) -> None:
    """With and without domain and account."""
    place = Position(sequence=42, number=7, time_s=1.5, pending=3)
    assert read_position(reply) == place
