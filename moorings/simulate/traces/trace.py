"""What every reader of traces makes, and the files they read, line by line."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct, structs

from moorings.errors import BadInputError
from moorings.files import check_file
from moorings.simulate.job import Job

MOST_LINE = 1 << 20
MOST_TEXT = 1 << 30
"""Characters of a line, and of a trace once it is unpacked."""
MOST_NAME = 63
MOST_SECONDS = 10 * 366 * 86_400
_OTHERS = re.compile("[^a-z0-9]+")


class SkippedJob(Struct, frozen=True, kw_only=True):
    """A job of a trace that is not simulated, and why."""

    name: str
    reason: str


class Trace(Struct, frozen=True, kw_only=True):
    """The jobs of a trace, in the order in which they came."""

    jobs: tuple[Job, ...]
    left_out: tuple[SkippedJob, ...] = ()


def make_trace(jobs: Iterable[Job], left_out: Iterable[SkippedJob]) -> Trace:
    """Order jobs by time, the first at 0."""
    ordered = sorted(jobs, key=lambda job: job.at_s)
    first_s = ordered[0].at_s if ordered else 0
    moved = (structs.replace(job, at_s=job.at_s - first_s) for job in ordered)
    return Trace(jobs=tuple(moved), left_out=tuple(left_out))


def make_name(text: str) -> str:
    """Make a name that Kubernetes accepts of what a trace calls something."""
    return _OTHERS.sub("-", text.lower())[:MOST_NAME].strip("-") or "none"


def read_text(file: Path) -> str:
    """Read a file as a whole, unpacked if its name ends in `.gz`.

    Raises:
        BadInputError: it cannot be read, or is too large.
    """
    return "".join(line for _, line in read_lines(file, most_line=MOST_TEXT))


def read_lines(file: Path, most_line: int = MOST_LINE) -> Iterator[tuple[int, str]]:
    """Go through the lines of a file and their numbers, unpacked if it is `.gz`.

    Raises:
        BadInputError: it cannot be read, is not UTF-8, or is too large.
    """
    number = read = 0
    try:
        with _open(file) as text:
            while line := text.readline(most_line + 1):
                number += 1
                read += len(line)
                if len(line) > most_line or read > MOST_TEXT:
                    raise refuse(file, number, "is too long for a trace")
                yield number, line
    except UnicodeDecodeError as error:
        raise refuse(file, number + 1, "is not UTF-8") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise refuse(file, number + 1, f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise BadInputError(str(file), str(error.strerror or error)) from error


def refuse(file: Path, line: int, reason: str) -> BadInputError:
    """Say what is wrong with a line."""
    return BadInputError(f"{file}: line {line}", reason)


def check_unique(file: Path, line: int, name: str, lines: dict[str, int]) -> None:
    """See that a job is the only one of its name.

    Raises:
        BadInputError: it is not.
    """
    if (other := lines.setdefault(name, line)) != line:
        raise refuse(file, line, f"has job {name} again, which is on line {other}")


def _open(file: Path) -> IO[str]:
    check_file(file)
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")
