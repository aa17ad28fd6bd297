"""The wall clock of a process, stepped while it runs; monotonic time goes on.

By a library that is preloaded (stepped.c), built where there is a C compiler.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("stepped.c")
_COMPILER = "cc"


def why_not() -> str:
    """Say why no clock can be stepped here; empty: it can."""
    return "" if shutil.which(_COMPILER) else "no C compiler (cc): no clock is stepped"


def make_clocks(folder: Path, **ahead_s: int) -> dict[str, SteppedClock]:
    """Make clocks by name in a folder, each so far ahead; none without a compiler.

    Raises:
        subprocess.CalledProcessError: the compiler refuses its source.
    """
    if why_not():
        return {}
    folder.mkdir(parents=True)
    library = _build(folder)
    return {
        name: SteppedClock(library, folder / name, seconds)
        for name, seconds in ahead_s.items()
    }


def _build(folder: Path) -> Path:
    """Build the library in a folder.

    Raises:
        subprocess.CalledProcessError: the compiler refuses it.
    """
    library = folder / "stepped.so"
    flags = ("-O1", "-Wall", "-Werror", "-shared", "-fPIC")
    subprocess.run([_COMPILER, *flags, "-o", library, _SOURCE, "-ldl"], check=True)
    return library


class SteppedClock:
    """The clock of all processes that are given its variables, and of their children.

    Not of programs in Go, which ask the kernel themselves.
    """

    def __init__(self, library: Path, file: Path, ahead_s: int = 0) -> None:
        self._library = library
        self._file = file
        file.touch()
        self.step(ahead_s)

    @property
    def variables(self) -> dict[str, str]:
        """The variables to start a process with."""
        return {
            "LD_PRELOAD": str(self._library),
            "MOORINGS_TEST_CLOCK": str(self._file),
        }

    def step(self, ahead_s: int) -> None:
        """Set the clock so far ahead of the machine's; negative: behind."""
        with self._file.open("r+b") as file:  # in place: it is mapped
            file.write(ahead_s.to_bytes(8, "little", signed=True))
