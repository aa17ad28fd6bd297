"""The benchmarks that decide in process run at a tiny size, and write their rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.soak


def rows_of(folder: Path, name: str, *arguments: str) -> list[dict[str, Any]]:
    path = folder / "rows.json"
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    subprocess.run([*command, "--json", str(path)], check=True, capture_output=True)
    found: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return found


def test_every_family_of_scale_runs(tmp_path: Path) -> None:
    """Each row has what its family promises."""
    found = rows_of(tmp_path, "solver.scale", "--nodes", "20")
    rows = {row["family"]: row for row in found}
    assert set(rows) == {"same", "mixed", "none", "one"}
    assert rows["same"]["status"] == "Optimal"
    assert rows["same"]["value"] == rows["same"]["bound"] > 0
    assert rows["none"]["reasons"] == "DevicesTaken"
    assert all(row["peak MiB"] > 0 for row in found)


def test_openb_has_a_row_for_every_policy(tmp_path: Path) -> None:
    """In both scopes, and somebody is refused in each."""
    found = rows_of(tmp_path, "openb", "--part", "120", "--batch", "1")
    assert {row["scope"] for row in found} == {"all", "devices"}
    assert len({row["policy"] for row in found}) == 6
    assert all(row["refused at 130%"] > 0 for row in found)


def test_as_many_claims_are_placed_as_upstream_places(tmp_path: Path) -> None:
    """All of them, on both sides."""
    found = rows_of(tmp_path, "solver.upstream_rate", "--nodes", "10")
    assert [row["scenario"] for row in found] == ["plain", "pairs", "parts"]
    for row in found:
        placed = [count for name, count in row.items() if name.endswith(" placed")]
        assert set(placed) == {row["claims"]} == {50}


def test_what_metrics_cost_is_measured(tmp_path: Path) -> None:
    """A count of the cluster, a scrape with all series, one gang and a batch."""
    found = rows_of(tmp_path, "solver.metrics", "--nodes", "20")
    tables = [row["table"] for row in found]
    assert tables == ["count", "scrape", "decision", "decision"]
    (scrape,) = (row for row in found if row["table"] == "scrape")
    assert 100_000 < scrape["bytes"] < 1_000_000


@pytest.mark.usefixtures("control_plane_programs")
def test_what_agents_say_is_measured_on_an_api_server(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, "cluster.slices", "--nodes", "8")
    assert row["nodes"] == 8
    assert min(row["slices/s"], row["health p50 ms"], row["bare s"]) > 0


@pytest.mark.usefixtures("control_plane_programs")
def test_a_gang_costs_three_writes_a_pod_as_the_bare_loop(tmp_path: Path) -> None:
    found = rows_of(tmp_path, "cluster.gang_gates", "--pods", "8")
    tables = [row["table"] for row in found]
    assert {name: tables.count(name) for name in tables} == {
        "seconds": 2,
        "processor seconds": 2,
        "writes a pod": 2,
    }
    for row in found:
        if row["table"] == "seconds":
            assert row["pods"] == 8
            assert row.get("decided s", 0) < row["open s"] <= row["bound s"]
        if row["table"] == "writes a pod":
            assert row["publisher"] == 3
