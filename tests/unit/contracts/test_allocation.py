"""Reasons as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "DevicesTaken"),
        ({"subject": "worker/gpus/gpu"}, "DevicesTaken (worker/gpus/gpu)"),
        ({"field": "spec.x", "message": "no"}, "DevicesTaken: spec.x: no"),
        (
            {"field": "spec.x", "subject": "worker", "message": "no"},
            "DevicesTaken: spec.x (worker): no",
        ),
    ],
)
def test_a_reason_says_rule_field_subject_and_message(
    parts: dict[str, Any], text: str
) -> None:
    """In this order, and nothing of what is empty."""
    assert str(Reason(rule=Rule.TAKEN, **parts)) == text
