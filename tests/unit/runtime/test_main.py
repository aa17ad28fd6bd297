"""A service with a wrong variable says which, and does not run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager

import pytest
import structlog

from runtime.main import service_main
from runtime.run import Task
from runtime.settings import ServiceConfig


def open_never(
    _config: ServiceConfig,
) -> AbstractAsyncContextManager[Mapping[str, Task]]:
    """Fail: nothing may be opened."""
    raise AssertionError


@pytest.fixture(autouse=True)
def _as_a_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take no argument of pytest; give up the test's standard output with its end."""
    monkeypatch.setattr(sys, "argv", ["x"])
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.mark.parametrize(
    ("variable", "value"), [("X_REPLICAS", "many"), ("X_SERVER", "nats://a")]
)
def test_a_wrong_variable_ends_the_service_before_it_begins(
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong type and unknown name alike: 2, and one line of the log."""
    monkeypatch.setenv(variable, value)
    assert service_main("x", ServiceConfig, open_never) == 2
    (line,) = capsys.readouterr().out.splitlines()
    logged = json.loads(line)
    assert (logged["event"], logged["service"]) == ("service.failed", "x")
    assert logged["reason"].startswith(f"{variable}: ")


def test_an_argument_ends_the_service_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for help does not start what claims the lead."""
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    assert service_main("x", ServiceConfig, open_never) == 2
    (line,) = capsys.readouterr().out.splitlines()
    reason = "--help: variables X_* set it up, no arguments"
    assert json.loads(line)["reason"] == reason
