"""A virtual environment of a test's own, with the project from a wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.lab import image


class Environment:
    """A virtual environment without pip, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True)
        (self.packages,) = folder.glob("lib/python*/site-packages")

    @classmethod
    def of(cls, wheel: Path, folder: Path, *extras: str) -> Self:
        """Install a wheel alone; what its extras need is linked from where we run.

        Compiled once: where nobody may write bytecode, every start would do it again.
        """
        made = cls(folder)
        made.install("--no-index", "--no-deps", "--compile", str(wheel))
        image.link(image.packages(*extras), made.packages)
        return made

    def install(self, *arguments: str) -> None:
        """Install by the pip of this environment, which finds only what it is told."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin/python")]
        subprocess.run([*pip, "install", "--quiet", *arguments], check=True)

    def run(
        self, program: str, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of it as a user does, far from the sources."""
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            env={"HOME": str(self.folder), "COLUMNS": "100", **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
