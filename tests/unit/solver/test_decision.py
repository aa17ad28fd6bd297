"""What a decision says of a gang in one word."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule
from contracts.ids import GangUID
from solver.decision import GangDecision

WHY = (Reason(rule=Rule.TAKEN),)


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, "allocated"),
        ({"reasons": WHY}, "none"),
        ({"reasons": WHY, "failed": True}, "error"),
        ({"reasons": WHY, "rejected": True}, "error"),
    ],
)
def test_a_lack_of_devices_is_a_no_and_a_wrong_input_an_error(
    fields: dict[str, Any], verdict: str
) -> None:
    """Whoever has no reason is in, with or without claims."""
    assert GangDecision(uid=GangUID("u"), name="g", **fields).verdict == verdict
