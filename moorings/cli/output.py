"""How answers look: tables for people, JSON or YAML for machines; errors on one line.

Colours and progress only where a terminal is. Knows nothing of what is shown.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import msgspec
import yaml
from rich.console import Console

from contracts.codec import encode, to_builtins
from moorings.yaml_scalars import is_text

console = Console(highlight=False, soft_wrap=True)
notices = Console(stderr=True, highlight=False, soft_wrap=True)


NOTHING = "nothing to show"
"""Printed instead of a table without rows."""
_QUIET_S, _REFRESH_S, _LONGEST_PAUSE_S = 1.0, 0.25, 60.0


class Format(StrEnum):
    """How to print."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def show(
    value: Any,
    form: Format,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    nothing: str = NOTHING,
) -> None:
    """Print a value as JSON or YAML, or its rows as a table, or `nothing` if none."""
    match form:
        case Format.JSON:
            _write_json(value)
        case Format.YAML:
            write_yaml(to_builtins(value))
        case Format.TABLE:
            show_table(columns, rows, nothing)


def write_yaml(value: Any) -> None:
    """Write a document of YAML, its fields in their order."""
    sys.stdout.write(yaml.dump(value, Dumper=_Dumper, sort_keys=False))


def _write_json(value: Any) -> None:
    """Write what people can read; in ASCII, which no terminal takes for commands."""
    data = msgspec.json.format(encode(value), indent=2)
    if not data.isascii():
        sys.stdout.write(json.dumps(to_builtins(value), indent=2))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    sys.stdout.write("\n")


class _Dumper(yaml.SafeDumper):
    """Writes what is repeated twice, and texts of several lines as such.

    A text is in quotes where YAML 1.1 or Kubernetes would read something else.
    """

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 # as PyYAML calls it
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if is_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def clean(text: str) -> str:
    """Show what is not printable as an escape; further lines are indented.

    Names and messages are others' words: a terminal must not take them for commands,
    nor a person one of their lines for one of ours.
    """
    return "\n    ".join(map(_escape_line, text.split("\n")))


def _escape_line(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def say(text: str, *, bold: bool = False) -> None:
    """Print a text as it is: nothing in it is markup."""
    style = "bold" if bold else None
    console.print(clean(text), markup=False, emoji=False, style=style)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    nothing: str = NOTHING,
    widths: Sequence[int] = (),
) -> list[int]:
    """Print rows under column names, nothing cut off, as kubectl does.

    Without rows there is no table: `nothing` is said on standard error. With `widths`,
    which an earlier call returned, the rows go on with its table.
    """
    lines = [[clean(str(cell)).replace("\n    ", " ") for cell in row] for row in rows]
    if not lines:
        notify(nothing)
        return list(widths)
    if not widths:
        lines.insert(0, [column.upper() for column in columns])
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        say(_align(lines.pop(0), widths), bold=True)
    for line in lines:
        say(_align(line, widths))
    return list(widths)


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "   ".join(padded).rstrip()


def notify(text: str) -> None:
    """Print something beside the answer, on standard error."""
    notices.print(clean(text), markup=False, emoji=False)


@contextmanager
def show_progress(text: str, *, asked: bool = False) -> Iterator[Callable[[str], None]]:
    """Show on standard error what takes longer than a second, and for how long.

    On a terminal, or where it is asked for; there a line now and then. Yields what
    changes the text.
    """
    progress = _Progress(text)
    if not (notices.is_terminal or asked):
        yield progress.tell
        return
    thread = threading.Thread(target=progress.run, name="progress", daemon=True)
    thread.start()
    try:
        yield progress.tell
    finally:
        progress.done.set()
        thread.join()


class _Progress:
    """What is being done, and since when."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._began_s = time.monotonic()
        self.done = threading.Event()

    def tell(self, text: str) -> None:
        """Change the text."""
        self._text = text

    def run(self) -> None:
        """Print until it is done."""
        if self.done.wait(_QUIET_S):
            return
        if notices.is_terminal:
            with notices.status(self._progress_line) as status:
                while not self.done.wait(_REFRESH_S):
                    status.update(self._progress_line)
            return
        pause_s = _QUIET_S
        notify(self._progress_line)
        while not self.done.wait(pause_s):
            notify(self._progress_line)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @property
    def _progress_line(self) -> str:
        return f"{self._text} ({time.monotonic() - self._began_s:.0f} s)"
