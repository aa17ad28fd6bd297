"""Whoever knows where a module lies knows where its tests lie, and the reverse."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.mirror import PACKAGES

ROOT = Path(__file__).parents[2]
MIRRORED = (*PACKAGES, "benchmarks")
MOST_LINES = 600
SUPPORT = ("tests.lab", "tests.oracles", "tests.draw", "tests.builders")
"""What benchmarks need as much as tests do."""


def modules(*folders: str) -> Iterator[Path]:
    """Every Python file below these folders, relative to the root."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT)


def test_a_unit_test_is_named_after_a_module_or_a_room() -> None:
    """`tests/unit/a/b/test_c.py` tries `a/b/c.py`, or the room `a/b/c/`.

    What pytest itself looks for is no test.
    """
    strays = []
    for package in MIRRORED:
        for path in modules(f"tests/unit/{package}"):
            mirrored = ROOT / path.relative_to("tests/unit").parent
            name = path.stem.removeprefix("test_")
            if (
                name != "conftest"
                and not (mirrored / f"{name}.py").exists()
                and not (mirrored / name / "__init__.py").exists()
            ):
                strays.append(str(path))
    assert strays == []


def test_what_tests_share_lies_in_rooms() -> None:
    """Nothing but what pytest itself looks for lies directly in `tests`."""
    lying = {path.name for path in (ROOT / "tests").glob("*.py")}
    assert lying == {"__init__.py", "conftest.py"}


def test_no_test_is_imported() -> None:
    """What two tests need lies where both may look for it: in a room of `tests`."""
    imported = {
        (str(path), name)
        for path in modules("tests", "benchmarks")
        for name in _imports(ROOT / path)
        if name.startswith("tests.") and ".test_" in name
    }
    assert imported == set()


def test_no_file_of_the_product_is_long() -> None:
    """A file of more than 400 lines holds more than one idea."""
    long = [
        str(path)
        for path in modules(*PACKAGES)
        if len((ROOT / path).read_text().splitlines()) > MOST_LINES
    ]
    assert long == []


def test_a_name_of_a_class_means_one_thing() -> None:
    """A reader who searches for a class finds one, whatever the package."""
    places = defaultdict(list)
    for path in modules(*PACKAGES):
        for statement in ast.parse((ROOT / path).read_text()).body:
            if isinstance(statement, ast.ClassDef):
                places[statement.name].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_benchmarks_share_with_tests_only_what_is_made_for_both() -> None:
    """A benchmark that imports a test, or what one test needs, is moved with it."""
    imported = {
        (str(path), name)
        for path in modules("benchmarks")
        for name in _imports(ROOT / path)
        if name.split(".")[0] == "tests"
    }
    assert {
        (path, name)
        for path, name in imported
        if ".".join(name.split(".")[:2]) not in SUPPORT
    } == set()
    assert imported


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_nothing_that_git_ignores_is_committed() -> None:
    """Passwords and keys lie in such files."""
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no checkout of git")
    assert listed.stdout == ""
