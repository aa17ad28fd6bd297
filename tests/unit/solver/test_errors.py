"""The solver's errors are one tree, drawn where they are defined."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import solver
from solver import errors
from solver.errors import SolverError

ROOT = Path(solver.__file__).parent
DRAWN = re.compile(r"^([ |]*)[|`]-- (\w+Error)\b", re.MULTILINE)


def defined(error: type[SolverError]) -> dict[str, type[SolverError]]:
    """List the errors below one, by name."""
    below: dict[str, type[SolverError]] = {}
    for child in error.__subclasses__():
        below |= {child.__name__: child, **defined(child)}
    return below


def test_every_error_stands_in_one_module() -> None:
    """No module of the solver but `errors` defines a SolverError."""
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        if re.search(r"^class \w+\(\w*Error\b", text, re.MULTILINE):
            name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
            import_module(name)
    assert {error.__module__ for error in defined(SolverError).values()} == {
        errors.__name__
    }


def test_the_drawing_is_the_tree() -> None:
    """Each error is drawn once, below its parent."""
    parents: list[str] = []
    drawn: dict[str, str] = {}
    for indent, name in DRAWN.findall(errors.__doc__ or ""):
        depth = len(indent) // 4
        parents[depth:] = [name]
        drawn[name] = parents[depth - 1] if depth else SolverError.__name__
    assert drawn == {
        name: error.__bases__[0].__name__
        for name, error in defined(SolverError).items()
    }
