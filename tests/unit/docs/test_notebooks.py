"""Notebooks run: their cells, in order, in one interpreter, as Jupyter runs them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.manifests import K8S

DOCS = K8S.parent / "docs"
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))


def run_cells(path: Path) -> list[Any]:
    """Run a notebook; returns the value that each cell with one would show."""
    shown: list[Any] = []
    names: dict[str, Any] = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, str(path), "exec"), names)  # noqa: S102  # our own
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), str(path), "eval")
            shown.append(eval(code, names))  # noqa: S307  # our own
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_keeps_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    run_cells(path)


def test_the_fleet_is_drawn_and_a_what_if_is_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pictures = run_cells(DOCS / "examples" / "fleet.ipynb")
    assert all(picture._repr_svg_().startswith("<svg") for picture in pictures)
    assert len(pictures) == 4
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Optimal {'evaluate': 'allocated', 'train': 'allocated'}"
    assert "train none" in printed[2]
    assert "a has room for 3 of 4 pods" in printed[2]
    assert printed[3] == "{'evaluate': 'allocated', 'train': 'allocated'}"
