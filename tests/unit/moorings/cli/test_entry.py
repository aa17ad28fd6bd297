"""Ctrl-C while the command line is being imported."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED_WHILE_IMPORTING = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from moorings.cli.entry import main
sys.argv = ["moorings", "version"]
main()
"""


def test_ctrl_c_in_the_first_moment_shows_no_traceback() -> None:
    """Who types it at once sees what those see who wait."""
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
