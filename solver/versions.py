"""What the bytes of an answer depend on besides the Problem: versions and platform."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

VERSION = version("moorings")
DEPENDENCIES = ("ortools", "msgspec", "numpy")
"""Packages whose version may change an answer's bytes."""


def platform_tag() -> str:
    """Name the platform that answers repeat on."""
    system, machine = platform.system().lower(), platform.machine().lower()
    implementation = platform.python_implementation().lower()
    major, minor, _ = platform.python_version_tuple()
    return f"{system}-{machine}-{implementation}-{major}.{minor}"


def dependency_versions() -> dict[str, str]:
    """Look up which versions an answer's bytes depend on."""
    versions = {}
    for name in DEPENDENCIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
