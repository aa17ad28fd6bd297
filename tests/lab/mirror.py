"""Prints which modules of the product have unit tests of their own, and which do not.

    python -m tests.lab.mirror

A module counts if it holds logic: some function of it chooses or repeats. `a/b/c.py` is
mirrored by `tests/unit/a/b/test_c.py`. The others are tried by the tests of their room,
or only by property, integration and end-to-end tests.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "contracts",
    "runtime",
    "solver",
    "publisher",
    "nodeagent",
    "authcallout",
    "moorings",
)
CHOICES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Match,
    ast.Try,
    ast.comprehension,
    ast.BoolOp,
)


def modules(package: str) -> Iterator[Path]:
    """Go through the modules of a package that hold logic, relative to the root."""
    for path in sorted((ROOT / package).rglob("*.py")):
        if path.stem != "__main__" and _holds_logic(ast.parse(path.read_text())):
            yield path.relative_to(ROOT)


def is_mirrored(module: Path) -> bool:
    """Whether a module has a unit test file of its own."""
    return (ROOT / "tests" / "unit" / module.parent / f"test_{module.stem}.py").exists()


def _holds_logic(module: ast.Module) -> bool:
    functions = (
        node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return any(
        isinstance(node, CHOICES)
        for function in functions
        for node in ast.walk(function)
    )


def main() -> None:
    """Print the share of each package and its modules without a test."""
    total = mirrored = 0
    lines: list[str] = []
    for package in PACKAGES:
        in_package = list(modules(package))
        without = [module for module in in_package if not is_mirrored(module)]
        lines += [f"{package}: {len(in_package) - len(without)} of {len(in_package)}"]
        lines += [f"  {module}" for module in without]
        total, mirrored = (
            total + len(in_package),
            mirrored + len(in_package) - len(without),
        )
    lines += [f"all: {mirrored} of {total}, {mirrored / total:.0%}"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
