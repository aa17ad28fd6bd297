"""What docs/modelled.md calls decided is shown on a real control plane."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
BEGINS = "| part of DRA | notes | shown by |"


def test_each_part_of_dra_that_is_decided_names_its_tests() -> None:
    """All of them end-to-end; that they exist, every document is checked for."""
    text = (ROOT / "docs/modelled.md").read_text()
    table = text.split(BEGINS)[1].split("\n\n")[0]
    end_to_end = {
        str(path.relative_to(ROOT / "tests/e2e").with_suffix(""))
        for path in (ROOT / "tests/e2e").rglob("test_*.py")
    }
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    assert rows
    for part, *_, shown in rows:
        named = [name.partition(":")[0] for name in shown.split("`")[1::2]]
        assert named, part
        assert {name.removeprefix("e2e/") for name in named} <= end_to_end, part
