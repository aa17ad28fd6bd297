"""What is no file is refused by name, before it is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moorings import files
from moorings.errors import BadInputError
from moorings.files import read_file


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(BadInputError, match=r"pipe\.yaml: is a named pipe, not a file"):
        read_file(pipe)


def test_a_device_is_refused() -> None:
    with pytest.raises(BadInputError, match="/dev/zero: is a device, not a file"):
        read_file(Path("/dev/zero"))


def test_a_pipe_of_the_shell_is_read() -> None:
    """As `<(...)` of a shell is."""
    reading, writing = os.pipe()
    os.write(writing, b"a: 1")
    os.close(writing)
    try:
        assert read_file(Path(f"/dev/fd/{reading}")) == b"a: 1"
    finally:
        os.close(reading)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    large.touch()
    os.truncate(large, files.MAX_BYTES + 1)
    with pytest.raises(BadInputError, match=r"large\.json: has more than 4096 MiB"):
        read_file(large)


def test_what_grows_while_it_is_read_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 3)
    (tmp_path / "a").write_bytes(b"1234")
    with (tmp_path / "a").open("rb") as file, pytest.raises(BadInputError):
        files.read_all("standard input", file)
