"""Taint rules: what they select, and the taint."""

from __future__ import annotations

from tests.builders import taint, taint_rule
from tests.builders.violations import assert_broken


def test_a_taint_rule_selects_by_valid_names() -> None:
    """Every part of the selector is checked, and the taint."""
    broken = taint_rule(taint(key="a b"), driver="A B", pool="", device="X")

    assert_broken(
        broken,
        "spec.deviceSelector.driver: Invalid value",
        "spec.deviceSelector.pool: Required value",
        "spec.deviceSelector.device: Invalid value",
        "spec.taint.key: Invalid value",
    )
