"""Builds the Go programs of tests/oracles/upstream, once a state of their sources.

Knows where Go and the cache are; must not know what the programs answer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "upstream"
REQUIRED = "MOORINGS_REQUIRE_GO"
NO_GO = "Go 1.26+ is not installed: https://go.dev/dl; these tests are skipped"
_BUILDS = {
    "bench": ("build",),
    "oracle": ("build",),
    "table": ("test", "-c", "-vet=off"),
}


def built(name: str) -> Path | None:
    """Give the `oracle`, `table` or `bench` program; None where there is no Go.

    Raises:
        subprocess.CalledProcessError: Go is there and cannot build it.
    """
    go = shutil.which("go")
    if go is None:
        return None
    folder = _cache() / _key(go)
    program = folder / name
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / name
        command = [go, *_BUILDS[name], "-o", str(fresh), f"./{name}"]
        subprocess.run(command, cwd=SOURCES, check=True)
        fresh.replace(program)
    return program


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "moorings" / "upstream"


def _key(go: str) -> str:
    """Hash what the programs are made of: the sources and the Go version."""
    asked = [go, "env", "GOVERSION"]
    told = subprocess.run(asked, cwd=SOURCES, check=True, capture_output=True)
    found = hashlib.sha256(told.stdout)
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in {".go", ".mod", ".sum"}:
            found.update(f"\0{path.relative_to(SOURCES)}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]
