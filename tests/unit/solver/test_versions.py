"""What the bytes of an answer depend on besides the Problem."""

from __future__ import annotations

import re

from solver.versions import (
    DEPENDENCIES,
    dependency_versions,
    find_versions,
    platform_tag,
)


def test_a_platform_is_named_by_system_machine_and_python() -> None:
    """In one word that may stand in a file name."""
    assert re.fullmatch(r"[a-z]+-\w+-[a-z]+-3\.\d+", platform_tag())


def test_every_dependency_has_its_version() -> None:
    """Answers are the same bytes only with the same ones."""
    assert dependency_versions().keys() == set(DEPENDENCIES)
    assert all(dependency_versions().values())


def test_a_package_that_is_not_installed_is_left_out() -> None:
    """A service without the solver's libraries still says what it has."""
    assert find_versions(["msgspec", "no-such-package"]).keys() == {"msgspec"}
