"""A folder that loses what was not synced, as a disk does when power goes.

Mounts by tests/lab/lostpages (FUSE): what a server that was killed had written and not
synced is taken from its files before it starts again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from tests.lab import go_program

SOURCES = Path(__file__).parent / "lostpages"
_DEVICE = Path("/dev/fuse")
_END_S = 20.0


class Lost(Struct, frozen=True, forbid_unknown_fields=True):
    """What a loss of power took."""

    files: int
    pages: int
    """Of 4 KiB, back to what they held before."""
    bytes: int
    """By which files are shorter again."""


def why_not() -> str:
    """Say why there can be no such folder here; empty: there can."""
    if not os.access(_DEVICE, os.R_OK | os.W_OK) or os.geteuid() != 0:
        return "no file system can be mounted here: needs /dev/fuse and root"
    return "" if go_program.built(SOURCES, ".") else go_program.NO_GO


class LossyDisk:
    """One such folder."""

    def __init__(self, mountpoint: Path) -> None:
        self._mountpoint = mountpoint
        self._below = mountpoint.with_name(f"{mountpoint.name}-below")
        self._process: subprocess.Popen[str] | None = None

    @contextlib.contextmanager
    def mounted(self) -> Iterator[None]:
        """Mount it while the block runs; nobody may be in it at the end."""
        program = go_program.built(SOURCES, ".")
        assert program is not None
        self._mountpoint.mkdir(parents=True)
        self._below.mkdir()
        command = [program, self._below, self._mountpoint]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._process = process
        try:
            assert self._read() == "mounted\n"
            yield
        finally:
            # The end of its input ends it.
            _given(process.stdin).close()
            try:
                process.wait(_END_S)
            finally:
                process.kill()
                process.wait()
                _given(process.stdout).close()

    def lose(self, seed: int) -> Lost:
        """Take what was not synced; who wrote it must be dead."""
        assert self._process is not None
        print(f"lose {seed}", file=_given(self._process.stdin), flush=True)
        return msgspec.json.decode(self._read(), type=Lost)

    def _read(self) -> str:
        assert self._process is not None
        return _given(self._process.stdout).readline()


def _given(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
