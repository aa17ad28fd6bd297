"""Files of traces, and the names in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moorings.errors import BadInputError
from moorings.simulate.traces.trace import make_name, read_lines


def test_names_are_what_kubernetes_accepts() -> None:
    assert make_name("application_15_0001") == "application-15-0001"
    assert make_name("Ü__") == "none"
    assert len(make_name("a" * 100)) == 63


def test_lines_have_an_end(tmp_path: Path) -> None:
    file = tmp_path / "long.swf"
    file.write_text("short\n" + "x" * 50)
    assert next(line for _, line in read_lines(file)) == "short\n"
    with pytest.raises(BadInputError, match="line 2: is too long for a trace"):
        list(read_lines(file, most_line=20))
    file.write_bytes(b"ok\n\xff\xfe\n")
    with pytest.raises(BadInputError, match="is not UTF-8"):
        list(read_lines(file))


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe to which nobody writes never ends."""
    pipe = tmp_path / "jobs.swf"
    os.mkfifo(pipe)
    with pytest.raises(BadInputError, match="is a named pipe, not a file"):
        list(read_lines(pipe))
