"""One of a thing is called otherwise than several, in everything that is said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.counts import counted, ordinal

ROOT = Path(__file__).parents[3]
ROOMS = (
    "authcallout",
    "contracts",
    "moorings",
    "nodeagent",
    "publisher",
    "runtime",
    "solver",
)
UNSAID = ("solver/judge", "moorings/upstream")
"""A fault of ours, which nobody is told, and the words of kube-scheduler."""
NOUN = re.compile(
    r" (agents|checks|claims|devices|domains|drivers|errors|gangs|groups|messages"
    r"|models|nodes|objects|pages|pods|pools|requests|rights|selectors|slices|solves"
    r"|streams|values|warnings)\b"
)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods"), (-1, "-1 pods")]
)
def test_only_one_is_one(number: int, text: str) -> None:
    assert counted(number, "pod") == text


def test_several_may_be_called_otherwise() -> None:
    assert counted(1, "pod waits", "pods wait") == "1 pod waits"
    assert counted(3, "pod waits", "pods wait") == "3 pods wait"


def find_plurals(text: str) -> Iterator[int]:
    """Yield the lines of f-strings that call any number of a thing several."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or value.format_spec:
                continue
            text_after = after.value if isinstance(after, ast.Constant) else ""
            if NOUN.match(str(text_after)) and not _is_no_count(value.value):
                yield node.lineno


def _is_no_count(value: ast.expr) -> bool:
    """Whether it is a limit of ours, a word, or was counted."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == counted.__name__
    name = value.id if isinstance(value, ast.Name) else ""
    return name.isupper()


def test_a_number_and_a_plural_are_found() -> None:
    assert list(find_plurals('f"{n} pods wait"')) == [1]
    assert list(find_plurals('f"{counted(n, 1)} wait; at most {MAX} pods"')) == []


def test_no_sentence_says_one_pods() -> None:
    """A count is followed by a noun of `counted`, but where it is a limit of ours."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(UNSAID)
        for line in find_plurals(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("number", "written"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (12, "12th"), (121, "121st")],
)
def test_places_in_a_line_are_written_as_people_say_them(
    number: int, written: str
) -> None:
    assert ordinal(number) == written
