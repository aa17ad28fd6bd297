"""Builds Go programs of the tests, once a state of their sources.

Knows where Go and the cache are; must not know what the programs do.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

REQUIRED = "MOORINGS_REQUIRE_GO"
NO_GO = "Go 1.26+ is not installed: https://go.dev/dl; these tests are skipped"


def built(
    module: Path, package: str, *how: str, name: str = "", toolchain: str = ""
) -> Path | None:
    """Give the program of a package of a module; None where there is no Go.

    Args:
        module: the folder of its go.mod.
        package: its folder in the module; gives the program its name.
        how: the command of Go that makes it, `build` when nothing is said.
        name: of the program, where its package gives several.
        toolchain: the Go that builds it, where it must be a newer one (GOTOOLCHAIN).

    Raises:
        subprocess.CalledProcessError: Go is there and cannot build it.
    """
    go = shutil.which("go")
    if go is None:
        return None
    folder = _cache() / module.name / _key(go, module)
    program = folder / (name or (package if package != "." else module.name))
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder), tempfile.TemporaryDirectory(dir=folder) as scratch:
        if program.exists():  # another lane has built it meanwhile
            return program
        fresh = Path(scratch) / program.name
        command = [go, *(how or ("build",)), "-o", str(fresh), f"./{package}"]
        environ = os.environ | ({"GOTOOLCHAIN": toolchain} if toolchain else {})
        subprocess.run(command, cwd=module, check=True, env=environ)
        fresh.replace(program)
    return program


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time build here, however many lanes ask."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "moorings"


def _key(go: str, module: Path) -> str:
    """Hash what the programs are made of: the sources and the Go version."""
    asked = [go, "env", "GOVERSION"]
    told = subprocess.run(asked, cwd=module, check=True, capture_output=True)
    found = hashlib.sha256(told.stdout)
    for path in sorted(module.rglob("*")):
        if path.suffix in {".go", ".mod", ".sum"}:
            found.update(f"\0{path.relative_to(module)}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]
