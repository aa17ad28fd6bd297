"""What every benchmark prints and writes: a table, and JSON with the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from solver.versions import VERSION, dependency_versions

Row = Mapping[str, str | float | int]


def arguments(what: str) -> argparse.Namespace:
    """Read `--size small|full`, `--seed N` and `--json FILE`."""
    return parser(what).parse_args()


def parser(what: str) -> argparse.ArgumentParser:
    """Make what reads the arguments that all benchmarks have."""
    arguments = argparse.ArgumentParser(description=what)
    arguments.add_argument("--size", choices=("small", "full"), default="small")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--json", type=Path, help="write the rows here, too")
    return arguments


def report(name: str, options: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Print the rows as a table, and write them as JSON if asked."""
    print_table(rows)
    write(name, options, rows)


def print_table(rows: Sequence[Row]) -> None:
    """Print rows, a column for each key of any."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, *([_text(row.get(key, "")) for key in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def print_tables(tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Print tables under their names; gives all rows, each with its table's name."""
    for name, rows in tables.items():
        print(f"\n{name}")
        print_table(rows)
    return [{"table": name, **row} for name, rows in tables.items() for row in rows]


def write(name: str, options: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Write the rows as JSON, if asked."""
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(_record(name, options, rows), indent=2))


def percentile(values: Sequence[float], share: float) -> float:
    """Take the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def cpu_seconds(pid: int) -> float:
    """Read how much CPU a process has used so far."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _text(value: str | float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _record(
    name: str, options: argparse.Namespace, rows: Sequence[Row]
) -> dict[str, object]:
    return {
        "benchmark": name,
        "command": " ".join(["python", *sys.argv]),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": options.seed,
        "machine": {
            "cores": os.cpu_count(),
            "load average": os.getloadavg(),
            "platform": platform.platform(),
            "python": platform.python_version(),
        },
        "versions": {"moorings": VERSION, **dependency_versions()},
        "rows": [dict(row) for row in rows],
    }
