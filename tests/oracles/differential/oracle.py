"""Upstream's allocator as a process: cases in, answers out, one at a time or many."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.oracles.differential.draw import Json

ARGUMENTS = ("-impl", "incubating,experimental")
"""Without them a case of few switches meets `stable`, with pools in random order."""


def answers(program: Path, cases: Iterable[Json]) -> list[Json]:
    """Answer many cases, in order."""
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    done = subprocess.run(
        [program, *ARGUMENTS], input=lines.encode(), capture_output=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


class Oracle:
    """Answers one case after another."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [program, *ARGUMENTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        """Use the process until the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.communicate()

    def answer(self, case: Json) -> Json:
        """Answer one case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(case)}\n".encode())
        self._process.stdin.flush()
        found: Json = json.loads(self._process.stdout.readline())
        return found
