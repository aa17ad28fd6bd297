"""Bytes of files that people name: regular files, and pipes that a shell hands over."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

from moorings.errors import BadInputError

MAX_BYTES = 4 << 30
"""Of a file; the objects of the largest clusters are a quarter of that."""
_HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Where a shell puts what `<(...)` and `<` open: somebody writes there, and ends."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_file(path: Path) -> bytes:
    """Read a file; nothing else is opened, as it may never end.

    Raises:
        BadInputError: it is not there, may not be read, is no file, or is too large.
    """
    source = str(path)
    try:
        check_file(path)
        with path.open("rb") as file:
            return read_all(source, file)
    except OSError as error:
        raise BadInputError(source, str(error.strerror)) from error


def check_file(path: Path) -> None:
    """See that a path is a file, before it is opened.

    Raises:
        BadInputError: it is no file, or too large.
        OSError: it is not there.
    """
    source, found = str(path), path.stat()
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    is_pipe = stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)
    if kind and not (is_pipe and source.startswith(_HANDED_OVER)):
        raise BadInputError(source, f"is {kind}, not a file; `-` reads standard input")
    if found.st_size > MAX_BYTES:
        raise BadInputError(source, _describe_limit())


def read_all(source: str, file: BinaryIO) -> bytes:
    """Read a stream to its end.

    Raises:
        BadInputError: there is too much.
    """
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BadInputError(source, _describe_limit())
    return data


def _describe_limit() -> str:
    return f"has more than {MAX_BYTES >> 20} MiB"
