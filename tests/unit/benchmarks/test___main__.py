"""Every benchmark is listed, and its manual says how to run it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from benchmarks.__main__ import GROUPS, ROOT, commands


def test_every_benchmark_is_listed_in_its_group() -> None:
    """Whatever can be run lies in a group, and is found there."""
    runnable = {
        path
        for path in ROOT.rglob("*.py")
        if 'if __name__ == "__main__":' in path.read_text()
    } - {ROOT / "__main__.py"}
    listed = {_file_of(command) for group in GROUPS for command, _ in commands(group)}
    assert listed == runnable


def test_the_manual_of_a_benchmark_begins_with_what_it_measures() -> None:
    """One line of it stands in the list; the command stands below it."""
    for group in GROUPS:
        for command, what in commands(group):
            manual = _file_of(command).read_text()
            assert what.endswith((".", "?")), command
            assert f"    {command} [" in manual, command


def _file_of(command: str) -> Path:
    name = command.rpartition(" ")[2]
    for candidate in (f"{name}.__main__", name):
        try:
            spec = importlib.util.find_spec(candidate)
        except ModuleNotFoundError:
            continue
        if spec is not None and spec.origin is not None:
            return Path(spec.origin)
    raise AssertionError(command)
