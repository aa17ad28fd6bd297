"""One rule has three names: of the model, of the judge, and of what a gang reads."""

from __future__ import annotations

import re
from pathlib import Path

import solver.judge
from contracts.allocation import Rule
from solver.engines.direct.rules import RULES

ROOT = Path(__file__).parents[3]
HEADING = "## One rule, three names"
JUDGED = re.compile(r'"([a-z]\w+): ')
"""How a violation begins: the judge's name of the rule."""
SYMMETRY = "single_lots_fill_in_order"
"""No rule of DRA, so nobody judges it."""


def table() -> list[tuple[list[str], list[str], list[str]]]:
    """Read the table of docs/semantics.md: by row, the names in each column."""
    text = (ROOT / "docs/semantics.md").read_text().split(HEADING)[1].split("\n## ")[0]
    rows = [line.strip("| ").split("|") for line in text.splitlines() if "|" in line]
    return [
        (
            cells[0].split("`")[1::2],
            cells[1].split("`")[1::2],
            cells[2].split("`")[1::2],
        )
        for cells in rows[2:]
    ]


def judged() -> set[str]:
    """Collect the names that the judge's violations begin with."""
    folder = Path(solver.judge.__file__).parent
    return {
        name
        for path in folder.glob("*.py")
        for name in JUDGED.findall(path.read_text())
    }


def test_every_rule_of_the_direct_model_names_its_judge() -> None:
    """Each rule of the model stands in one row, with the judge's rules for it."""
    named = [name for direct, _, _ in table() for name in direct]
    assert sorted(named) == sorted(rule.__name__ for rule in RULES)
    for direct, judges, _ in table():
        assert bool(judges) is (direct != [SYMMETRY]), direct


def test_every_rule_of_the_judge_stands_in_one_row() -> None:
    """The judge states nothing that the table does not place."""
    named = [name for _, judges, _ in table() for name in judges]
    assert sorted(named) == sorted(judged())


def test_reasons_are_those_that_gangs_read() -> None:
    """The last column holds values of `Rule`, as they travel."""
    named = {name for _, _, reasons in table() for name in reasons}
    assert named <= {rule.value for rule in Rule}
    assert Rule.JOINT.value in named
