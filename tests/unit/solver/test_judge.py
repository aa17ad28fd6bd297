"""The judge as a whole: no rule of it is untried."""

from __future__ import annotations

import re
from pathlib import Path

import solver.judge.rules

TESTS = Path(__file__).parent / "judge"


def test_every_rule_of_the_judge_is_broken_somewhere() -> None:
    """Each name that a violation begins with is a case of some test of the room."""
    room = Path(solver.judge.rules.__file__).parent
    named = _found(room, r'f?"([a-z][A-Za-z]+): ')
    assert len(named) > 30
    cases = _found(TESTS, r'^    "([a-z][A-Za-z]+)(?:: [^"]*)?": ')
    said = _found(TESTS, r'[ (]"([a-z][A-Za-z]+): [^"]*"')
    assert named <= cases | said


def _found(folder: Path, pattern: str) -> set[str]:
    return {
        name
        for path in folder.glob("*.py")
        for name in re.findall(pattern, path.read_text(), re.MULTILINE)
    }
