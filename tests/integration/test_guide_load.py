"""The load of Kubernetes' guide for administrators of devices, a tenth of it.

72 pods that run on and 8 Jobs of two pods each, on 10 nodes, with Moorings and without.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cluster.admin_load import (
    ALONE,
    CHURN,
    FILL,
    OURS,
    PROCESSORS,
    QUERIES,
    STARTS,
)


@pytest.mark.usefixtures("control_plane_programs")
def test_every_pod_of_the_guides_load_starts_either_way(tmp_path: Path) -> None:
    """A row for each way and phase, with what the guide's queries say."""
    path = tmp_path / "rows.json"
    module = "benchmarks.cluster.admin_load"
    command = [sys.executable, "-m", module, "--json", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    rows = json.loads(path.read_text())["rows"]
    tables = {
        name: {(row["way"], row["phase"]): row for row in rows if row["table"] == name}
        for name in (STARTS, QUERIES, PROCESSORS)
    }
    phases = {(way, phase) for way in (ALONE, OURS) for phase in (FILL, CHURN)}
    assert all(table.keys() == phases for table in tables.values())
    for (_, phase), row in tables[STARTS].items():
        assert (row["pods"], row["missing"]) == ({FILL: 72, CHURN: 16}[phase], 0)
        assert 0 < row["p50 s"] <= row["p99 s"] <= row["max s"]
    for row in tables[QUERIES].values():
        quantiles = ("work p99 s", "scheduling p99 s", "algorithm p99 s")
        assert all(row[name] > 0 for name in ("added/s", *quantiles))
    for (way, _), row in tables[PROCESSORS].items():
        assert row["kube-apiserver"] > 0
        assert ("publisher" in row) == (way == OURS)
