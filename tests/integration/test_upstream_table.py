"""Upstream's own table tests pass with our planner in the allocator's place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.oracles.upstream_oracle import built

ROOT = Path(__file__).parents[2]
KNOWN: dict[str, str] = {}
"""Cases that we answer otherwise on purpose, and why; a case that passes is not one."""
_RESULT = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+/\S+) ", re.MULTILINE)


def test_upstreams_table_accepts_our_answers(upstream_oracle: Path) -> None:
    table = built("table")
    assert table is not None
    solver = f"cd {ROOT} && {sys.executable} -m tests.oracles.upstream_solver"
    done = subprocess.run(
        [table, "-test.v", "-test.count=1"],
        cwd=upstream_oracle.parent,
        env={**os.environ, "TABLE_SOLVER": solver},
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = {name: verdict for verdict, name in _RESULT.findall(done.stdout)}
    cases = [name for name in verdicts if name != "TestTable/interrupt"]
    failed = {name for name in cases if verdicts[name] == "FAIL"}
    assert len(cases) >= 280, done.stdout[-2000:]
    assert failed == KNOWN.keys(), "\n".join(sorted(failed ^ KNOWN.keys()))
