"""What the bytes of an answer depend on besides the Problem: versions and platform."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

PROCEDURE = 4
"""Of the decision procedure: one more where recorded Problems get other answers."""
VERSION = f"{version('moorings')}+{PROCEDURE}"
DEPENDENCIES = ("ortools", "msgspec", "numpy")
"""Packages whose version may change an answer's bytes."""


def platform_tag() -> str:
    """Name the platform that answers repeat on."""
    system, machine = platform.system().lower(), platform.machine().lower()
    implementation = platform.python_implementation().lower()
    major, minor, _ = platform.python_version_tuple()
    return f"{system}-{machine}-{implementation}-{major}.{minor}"


def find_versions(packages: Iterable[str]) -> dict[str, str]:
    """Read which versions are installed; packages that are not are left out."""
    versions = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


_VERSIONS = find_versions(DEPENDENCIES)
"""Read from files once: a busy solver asks many times a second."""


def dependency_versions() -> dict[str, str]:
    """Return the versions that an answer's bytes depend on."""
    return dict(_VERSIONS)
