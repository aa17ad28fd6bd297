"""Manual pages are made of all commands, in the language of man(7)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorings.cli.commands import COMMANDS
from moorings.cli.main import app


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    folder = tmp_path_factory.mktemp("man") / "man1"
    result = CliRunner().invoke(app, ["man", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


def test_every_command_has_a_page(pages: Path) -> None:
    names = {path.name for path in pages.iterdir()}
    assert names >= {f"moorings-{name}.1" for name in COMMANDS} | {"moorings.1"}
    assert "moorings-solves-list.1" in names


def test_a_page_has_what_the_help_has(pages: Path) -> None:
    page = (pages / "moorings-get.1").read_text()
    assert page.startswith('.TH "MOORINGS\\-GET" 1 ')
    assert r".B \-l, \-\-selector" in page
    assert ".SH EXIT STATUS" in page
    assert r".BR moorings\-get (1)" in (pages / "moorings.1").read_text()


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_to_complain_of(pages: Path) -> None:
    for path in sorted(pages.iterdir()):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-rLL=200n", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), path.name
