"""Lists the benchmarks: what each one measures, and its command.

    python -m benchmarks

Each prints a table; `--size full` is the size of docs/performance.md, `--json FILE`
writes the rows. `--help` of each says what its columns mean.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent
GROUPS = ("solver", "bus", "cluster", "node", "console", "openb")


def commands(group: str) -> Iterator[tuple[str, str]]:
    """Go through the commands of a group, each with what it measures."""
    for path in sorted((ROOT / group).glob("*.py")):
        source = path.read_text()
        if 'if __name__ == "__main__":' in source:
            yield _command_of(group, path), _first_line(source)


def _command_of(group: str, path: Path) -> str:
    name = "" if path.stem == "__main__" else f".{path.stem}"
    return f"python -m benchmarks.{group}{name}"


def _first_line(source: str) -> str:
    manual = ast.get_docstring(ast.parse(source)) or ""
    return manual.partition("\n")[0]


def main() -> None:
    """Print what there is, by group."""
    for group in GROUPS:
        print(f"{group}: {_first_line((ROOT / group / '__init__.py').read_text())}")
        for command, what in commands(group):
            print(f"  {command:<42} {what}")


if __name__ == "__main__":
    main()
