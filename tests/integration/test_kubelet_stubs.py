"""The messages of kubelet's interfaces are what its .proto files say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.controlplane import programs

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "nodeagent" / "kubelet" / "stubs"


def test_the_stubs_are_what_the_script_makes(tmp_path: Path) -> None:
    """Byte by byte, at the Kubernetes version that the tests run."""
    if shutil.which("go") is None and os.environ.get(programs.REQUIRED) != "1":
        pytest.skip(programs.NO_CONTROL_PLANE)
    script = ROOT / "scripts" / "kubelet-stubs.sh"
    environ = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["bash", str(script), str(tmp_path)], check=True, env=environ)
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_text() for file in STUBS.glob("*_pb2.py*")}
    assert made == kept
