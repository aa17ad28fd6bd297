"""Installs packages of npm for tests, once a state of their package.json.

Knows where npm and the cache are; must not know what the packages do.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest


def installed(package: Path) -> Path:
    """Return a folder with a package.json and what it depends on.

    Skips the test where npm is missing, or cannot have the packages.
    """
    if shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")
    text = package.read_bytes()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "moorings" / "npm" / sha256(text).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        # One process at a time, however many lanes ask.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            (folder / package.name).write_bytes(text)
            command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
            result = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False
            )
            if result.returncode:
                pytest.skip(f"npm cannot install {package}: {result.stderr!r}")
            (folder / "installed").touch()
    return folder
