"""The executable as people call it, with a state home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MAIN = [sys.executable, "-c", "from moorings.cli.main import main; main()"]


def moorings(
    *arguments: str, home: Path, server: str = "", stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "COLUMNS": "100"}
    if server:
        environment["MOORINGS_SERVER"] = server
    return subprocess.run(
        [*MAIN, *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
