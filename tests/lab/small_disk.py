"""A small disk, to be filled and emptied by a test."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def why_not() -> str:
    """Say why there can be no such disk here; empty: there can."""
    return "" if os.geteuid() == 0 else "no file system can be mounted here: needs root"


class SmallDisk:
    """One that is mounted."""

    def __init__(self, mountpoint: Path) -> None:
        self._filling = mountpoint / "filling"

    def fill(self) -> None:
        """Leave no room for a single byte."""
        with self._filling.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 10, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def make_room(self) -> None:
        """Take away what fills it."""
        self._filling.unlink()


@contextmanager
def small_disk(mountpoint: Path, size: str = "128k") -> Iterator[SmallDisk]:
    """Mount one while the block runs; nobody may be in it at the end."""
    mountpoint.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mountpoint)]
    subprocess.run(command, check=True)
    try:
        yield SmallDisk(mountpoint)
    finally:
        subprocess.run(["umount", mountpoint], check=True)
