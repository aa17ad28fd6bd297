"""A connection is made with what the files hold at that moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.bus.credentials import read_credentials
from runtime.wire import BusSettings


def _settings(file: Path, user: str) -> BusSettings:
    return BusSettings(name="t", user=user, password_file=str(file))


def test_a_password_may_bring_its_login_and_a_token_has_none(tmp_path: Path) -> None:
    file = tmp_path / "password"
    for text, user, found in (
        ("solver.b:p1\n", "solver", ("solver.b", "p1")),
        ("p2", "solver", ("solver", "p2")),
        ("eyJ.eyJ.c-_", "nodeagent node-1", ("nodeagent node-1", "eyJ.eyJ.c-_")),
    ):
        file.write_text(text)
        read = read_credentials(_settings(file, user))
        assert (read.login, read.password) == found


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The connection tries again: whoever writes it may be late."""
    with pytest.raises(OSError, match="nowhere"):
        read_credentials(_settings(tmp_path / "nowhere", "solver"))


def test_without_files_nothing_is_shown() -> None:
    assert read_credentials(BusSettings(name="t")) == (None, "", None)
