"""The Containerfile, built by buildah.

Its base is made of Debian's packages here, as CI has no registry to take it from; it
needs buildah and mmdebstrap, and minutes, so it is one of the long forms. The same
content is made by scripts/image.py, installed and run on a node (test_installation).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import image

CACHE = Path.home() / ".cache" / "moorings" / "image"
PACKAGES = "python3.11,python-is-python3,python3-pip,python3-venv,ca-certificates"
PACKAGES += ",libstdc++6,tzdata"  # the image that it stands for has them, too
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
TOOLS = ("buildah", "mmdebstrap")

pytestmark = pytest.mark.soak


class Builder:
    """buildah with a storage of its own, and without privileges that CI lacks."""

    def __init__(self, folder: Path) -> None:
        self._command = ["buildah", "--storage-driver", "vfs"]
        self._command += ["--root", str(folder / "root")]
        self._command += ["--runroot", str(folder / "run")]

    def __call__(self, *arguments: str) -> str:
        """Run a command of buildah; gives what it prints."""
        command = [*self._command, *arguments]
        return subprocess.check_output(command, cwd=image.ROOT, text=True).strip()

    def run(self, container: str, *command: str) -> tuple[int, str]:
        """Run a command in a container, as the image's user."""
        ended = subprocess.run(
            [*self._command, "run", "--isolation", "chroot", container, "--", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr


def base() -> Path:
    """Make a Debian with Python and pip, once."""
    of = hashlib.sha256(PACKAGES.encode()).hexdigest()[:16]
    made = CACHE / f"containerfile-base-{of}.tar"
    if not made.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        begun = made.with_suffix(f".{os.getpid()}.tar")
        command = ["mmdebstrap", "--quiet", "--variant=essential"]
        command += [f"--include={PACKAGES}", "bookworm", str(begun)]
        subprocess.run(command, check=True)
        begun.rename(made)
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Builder, str]]:
    """A container of the image."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed")
    folder = tmp_path_factory.mktemp("containers")
    builder = Builder(folder)
    below = builder("from", "scratch")
    builder("add", "--quiet", below, str(base()), "/")
    # What this machine trusts, should a proxy stand before the registry of wheels.
    builder("copy", "--quiet", below, AUTHORITIES, AUTHORITIES)
    builder("config", "--env", f"PIP_CERT={AUTHORITIES}", below)
    builder("commit", "--quiet", "--rm", below, "localhost/base")
    given = ("--build-arg", "PYTHON=localhost/base", "--tag", "localhost/moorings")
    builder("bud", "--isolation", "chroot", *given, ".")
    yield builder, builder("from", "localhost/moorings")
    shutil.rmtree(folder)


@pytest.mark.parametrize("service", image.SERVICES)
def test_each_service_starts(built: tuple[Builder, str], service: str) -> None:
    """Up to its configuration: all that it imports is there."""
    builder, container = built
    unknown = f"{service.upper()}_NONSENSE"
    code, said = builder.run(container, "env", f"{unknown}=x", "python", "-m", service)
    assert code == 2, said
    assert f"{unknown}: is unknown" in said


def test_the_command_line_runs(built: tuple[Builder, str]) -> None:
    """As the user of the image, who is nobody."""
    builder, container = built
    code, said = builder.run(container, "moorings", "--help")
    assert code == 0, said
    assert builder.run(container, "id", "-u") == (0, "65532\n")


def test_selectors_are_evaluated(built: tuple[Builder, str]) -> None:
    """The sandbox starts a Python of its own, with the engine's library."""
    builder, container = built
    code, said = builder.run(container, "python", "-c", image.SELECTOR)
    assert code == 0, said
    assert "value=True" in said


def test_its_content_is_listed_and_pinned(built: tuple[Builder, str]) -> None:
    """Python's packages by the pinned hashes, Debian's by their versions."""
    builder, container = built
    code, text = builder.run(container, "cat", "/opt/moorings/sbom.cdx.json")
    assert code == 0, text
    components = json.loads(text)["components"]
    python = {c["name"]: c for c in components if c["purl"].startswith("pkg:pypi/")}
    debian = [c["name"] for c in components if c["purl"].startswith("pkg:deb/")]
    assert python.keys() == image.packages().keys()
    assert "libc6" in debian
    pinned = (image.ROOT / "constraints.txt").read_text()
    allowed = set(re.findall(r"sha256:([0-9a-f]{64})", pinned))
    assert {c["hashes"][0]["content"] for c in python.values()} <= allowed
