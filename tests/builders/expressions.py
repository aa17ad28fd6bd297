"""What the CEL engine says of an expression, without its sandbox."""

from __future__ import annotations

from functools import cache

from contracts.device import Device
from solver.cel.engine import Engine
from solver.selectors.table import Verdict
from tests.builders.devices import device
from tests.builders.values import DRIVER


@cache
def _engine() -> Engine:
    return Engine()


def judge_expression(expression: str, content: Device | None = None) -> Verdict:
    """Evaluate an expression that is known to be harmless on a device."""
    return _engine().evaluate(expression, DRIVER, content or device())
