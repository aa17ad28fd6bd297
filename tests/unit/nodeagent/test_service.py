"""What a node agent does not load: each node would pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [*("rich", "uvloop", "ortools", "numpy", "typer"), "nodeagent.sources.nvml.source"],
)
def test_what_an_agent_has_no_use_for_is_not_loaded(module: str) -> None:
    """A kubelet's driver included."""
    loaded = "import nodeagent.__main__, nodeagent.kubelet.wiring, sys"
    asked = f"{loaded}; print({module!r} in sys.modules)"
    command = (sys.executable, "-c", asked)
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    assert answer.stdout == "False\n"
