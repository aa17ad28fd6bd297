"""A line of the log is one JSON object, with all facts that are bound."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from runtime.log import bind_facts, configure_logging, get_logger


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the logs of other tests as they were."""
    configured = structlog.get_config() if structlog.is_configured() else None
    with structlog.contextvars.bound_contextvars():
        yield
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()
    if configured is not None:
        structlog.configure(**configured)


def test_a_line_has_event_level_module_and_what_is_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On one line, for machines, where no person watches."""
    configure_logging("solver")
    bind_facts(gang="train")
    get_logger("a.b").info("gang.decided", solve_ms=4)
    line = json.loads(capsys.readouterr().out)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "gang.decided",
        "level": "info",
        "module": "a.b",
        "service": "solver",
        "gang": "train",
        "solve_ms": 4,
    }


def test_what_is_below_the_level_is_not_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what is at it, is."""
    configure_logging("solver", level="warning")
    log = get_logger("a.b")
    log.info("gang.decided")
    assert capsys.readouterr().out == ""
    log.warning("gang.late")
    assert json.loads(capsys.readouterr().out)["event"] == "gang.late"


def test_a_traceback_tells_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    """They are others' words, and may be a whole cluster."""
    configure_logging("test")
    words = "what an author wrote"

    def read(words: str) -> int:
        return int(words) if words else len(words)

    try:
        read(words)
    except ValueError:
        get_logger("a.b").exception("message.failed")
    line = capsys.readouterr().out
    assert "test_log.py" in line
    assert "locals" not in line


def test_a_service_goes_on_where_its_log_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 # closing it fails, too
    monkeypatch.setattr(sys, "stdout", full)
    configure_logging("solver")
    get_logger("a.b").info("gang.decided", reason="long " * 10_000)
    get_logger("a.b").info("gang.decided")
    with suppress(OSError):
        full.close()
