"""What the kernel says of processes: whose children they are, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def children(pid: int) -> list[int]:
    """List the children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def descendants(pid: int) -> Iterator[int]:
    """List the children of a process, theirs, and so on."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def command_of(pid: int) -> str:
    """Return the command line of a process; empty: it is gone."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
    return command.replace("\0", " ").strip()


def resident_mebibytes(pid: int) -> int:
    """Return how much memory a process holds; nothing if it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20
