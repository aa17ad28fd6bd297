"""Gangs: what follows from their phase, and how large their numbers are."""

from __future__ import annotations

import json

import pytest

from contracts import topics
from contracts.codec import encode
from contracts.errors import DecodeError
from contracts.gang import GangPhase
from tests.builders import gang, member
from tests.builders.decisions import submission


def test_a_gang_that_is_over_holds_nothing() -> None:
    """Devices are held from the decision on until the end, and never after it."""
    holding = {phase for phase in GangPhase if phase.holds_devices}
    over = {phase for phase in GangPhase if phase.is_terminal}
    assert holding == {GangPhase.DECIDED, GangPhase.WRITTEN}
    assert over == {GangPhase.COMPLETED, GangPhase.CANCELLED, GangPhase.REJECTED}
    assert not holding & over


@pytest.mark.parametrize("field", ["priority", "weight"])
def test_priority_and_weight_are_numbers_of_32_bits_where_they_are_read(
    field: str,
) -> None:
    """Whoever sends more over the bus than the API server takes outranks nobody."""
    message = json.loads(encode(submission(gang(member()))))
    for number in (2**31 - 1, -(2**31)):
        message["gang"]["spec"][field] = number
        read = topics.SUBMISSIONS.codec.decode(json.dumps(message).encode())
        assert getattr(read.gang.spec, field) == number
    for number in (2**31, -(2**31) - 1, 2**80):
        message["gang"]["spec"][field] = number
        with pytest.raises(DecodeError, match=field):
            topics.SUBMISSIONS.codec.decode(json.dumps(message).encode())
