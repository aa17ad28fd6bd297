"""The demo is real and ends by itself; two of them run side by side."""

from __future__ import annotations

import json
import subprocess
import sys

MAIN = [sys.executable, "-c", "from moorings.cli.main import main; main()"]


def test_two_demos_side_by_side_do_the_whole_job() -> None:
    """Ports and folders are chosen freely, so neither disturbs the other."""
    processes = [
        subprocess.Popen(
            [*MAIN, "demo", "--fleet", "small", "--seed", str(seed), "-o", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    for process in processes:
        printed, errors = process.communicate(timeout=300)
        assert process.returncode == 0, printed + errors
        summary = json.loads(printed)
        assert summary["sameBytes"] is True
        assert summary["avoided"] is True
        assert summary["allocated"] > 0
        assert summary["pending"] > 0
        assert summary["explained"]
        assert 0 < summary["gpusUsed"] <= summary["gpus"]
        assert summary["manifests"] >= summary["allocated"]
