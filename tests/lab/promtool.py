"""Prometheus' own programs, where they can be had: installed, or cached."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def _find() -> Path | str:
    script = ROOT / "scripts" / "prometheus.sh"
    found = subprocess.run(
        ["bash", str(script), "find"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        return found.stderr.strip().rpartition("\n")[2]
    return Path(found.stdout.strip())


def promtool(*arguments: str, text: str | None = None) -> str:
    """Run promtool; gives what it prints.

    Skips the test where there is none.

    Raises:
        AssertionError: it found something wrong.
    """
    folder = _find()
    if isinstance(folder, str):
        pytest.skip(folder)
    done = subprocess.run(
        [str(folder / "promtool"), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def find_prometheus() -> str:
    """Return Prometheus itself; skips the test where there is none."""
    folder = _find()
    if isinstance(folder, str):
        pytest.skip(folder)
    if not (folder / "prometheus").is_file():
        pytest.skip("no prometheus beside promtool")
    return str(folder / "prometheus")
