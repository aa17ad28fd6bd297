"""Shells get a script that asks `moorings` itself."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from typer.testing import CliRunner

from moorings.cli.completion import Shell
from moorings.cli.main import app


@pytest.mark.parametrize("shell", Shell)
def test_a_script_is_one_of_its_shell(shell: Shell) -> None:
    """Which parses it, where it is here."""
    result = CliRunner().invoke(app, ["completion", shell.value])
    assert result.exit_code == 0
    assert f"_MOORINGS_COMPLETE=complete_{shell.value}" in result.stdout
    if program := shutil.which(shell.value):
        done = subprocess.run(
            [program, "-n"],
            input=result.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_other_shells_are_refused() -> None:
    assert CliRunner().invoke(app, ["completion", "tcsh"]).exit_code == 2
