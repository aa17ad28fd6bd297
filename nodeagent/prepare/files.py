"""Writes files whole or not at all, whenever the machine stops.

A file appears under its name only once its bytes are on the disk, and is there after
a crash once its folder was synced. Names come from the API server: each is checked
here, so that none leads out of its folder. All functions block.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,250}", re.ASCII)
_TEMPORARY = ".tmp"
_STALE_S = 60.0
"""No agent takes this long to write a file."""


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Create a folder and those above it.

    Raises:
        OSError: it cannot be had.
    """
    folder.mkdir(mode=mode, parents=True, exist_ok=True)


def place(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder.

    Raises:
        ValueError: the name is a path, or hidden.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:64]!r} is not a file name")
    return folder / name


def stage_file(
    path: Path, data: bytes, mode: int = 0o600, *, outlives_power: bool = True
) -> Path:
    """Write bytes to a hidden file beside a path and return it; see `publish`.

    Raises:
        OSError: the disk is full, or the folder may not be written.
    """
    staged = path.with_name(f".{path.name}.{secrets.token_hex(8)}{_TEMPORARY}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(staged, flags, mode)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if outlives_power:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        remove(staged)
        raise
    return staged


def publish(staged: Path, path: Path) -> None:
    """Give staged bytes their name, in place of what has it.

    Raises:
        OSError: it cannot be done; the staged bytes are gone.
    """
    try:
        os.replace(staged, path)  # noqa: PTH105 # one system call, seen by the tests
    except BaseException:
        remove(staged)
        raise


def sync(folder: Path) -> None:
    """Return once the names in a folder outlive a crash.

    Raises:
        OSError: the disk fails.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file whole, so that it outlives a crash.

    Raises:
        OSError: it cannot be written; what was there is there.
    """
    publish(stage_file(path, data, mode), path)
    sync(path.parent)


def write_quickly(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file whole for whoever reads it until the machine stops.

    Raises:
        OSError: it cannot be written; what was there is there.
    """
    publish(stage_file(path, data, mode, outlives_power=False), path)


def remove(path: Path) -> None:
    """Remove a file; one that is not there is as good.

    Raises:
        OSError: it may not be removed.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 # one system call, seen by the tests


def remove_stale(folder: Path, prefix: str = "") -> None:
    """Remove staged files that a killed agent left behind.

    Raises:
        OSError: it may not be removed.
    """
    for path in folder.glob(f".{prefix}*{_TEMPORARY}"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE_S:
                remove(path)
