"""Which server is asked is what was said, else what runs here."""

from __future__ import annotations

import pytest

from moorings.cli import options


def test_the_nearest_answer_to_where_the_server_is_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Said, then that of the running stack, then the usual one."""
    running = "nats://127.0.0.1:9"
    monkeypatch.setattr(options, "find_running_server", lambda: running)
    assert options.choose_server("nats://other") == "nats://other"
    assert options.choose_server("") == running
    monkeypatch.setattr(options, "find_running_server", lambda: "")
    assert options.choose_server("") == options.DEFAULT_SERVER
