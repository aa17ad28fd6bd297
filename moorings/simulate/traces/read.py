"""Which reader a trace has, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from moorings.errors import BadInputError
from moorings.simulate.traces.openb import read_openb
from moorings.simulate.traces.philly import read_philly
from moorings.simulate.traces.swf import read_swf
from moorings.simulate.traces.trace import Trace

READERS: Mapping[str, Callable[[Path], Trace]] = {
    ".swf": read_swf,
    ".csv": read_openb,
    ".json": read_philly,
}


def read_trace(file: Path) -> Trace:
    """Read a trace: `.swf`, `.csv` (openb) or `.json` (Philly), each also as `.gz`.

    Raises:
        BadInputError: it is of no kind that is known, cannot be read, or has no jobs.
    """
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    reader = READERS.get(suffixes[-1] if suffixes else "")
    if reader is None:
        known = ", ".join(READERS)
        raise BadInputError(str(file), f"is none of {known}, also packed as .gz")
    trace = reader(file)
    if not trace.jobs:
        raise BadInputError(str(file), "has no job that can be simulated")
    return trace
