"""What the sandbox's process knows before it gives up its files."""

from __future__ import annotations

import zoneinfo
from pathlib import Path

from contracts.device import Device
from solver.cel import worker
from solver.cel.engine import Engine
from solver.selectors.table import Verdict


def test_all_time_zones_of_this_machine_are_listed() -> None:
    """Python opens each file to know; those that only its own package has are none."""
    here = {
        name
        for name in zoneinfo.available_timezones()
        if any((Path(root) / name).is_file() for root in zoneinfo.TZPATH)
    }
    assert here <= set(worker._list_time_zones())


def test_each_time_zone_is_evaluated_once() -> None:
    """Without an error, which would leave those after it unread."""
    engine = Engine()
    asked: list[str] = []
    evaluate = engine.evaluate

    def note(expression: str, driver: str, device: Device) -> Verdict:
        verdict = evaluate(expression, driver, device)
        asked.append(expression)
        assert verdict.value is True, expression
        return verdict

    engine.evaluate = note  # type: ignore[method-assign]
    worker._load_time_zones(engine)
    words = " ".join(asked).replace("'", " ").split()
    assert set(worker._list_time_zones()) <= set(words)
