"""What a shell may complete of files, and where nobody answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import typer
from typer.main import get_group

from moorings.cli.completing import complete_explained, complete_words
from moorings.cli.completing_solves import (
    complete_replayed,
    complete_solves,
    list_exported,
)
from moorings.cli.main import app
from tests.lab.command_line import moorings

NOWHERE = "nats://127.0.0.1:1"


@pytest.fixture
def nobody(tmp_path: Path) -> typer.Context:
    """A line that names the folder of a stack that is not there."""
    context = typer.Context(get_group(app))
    context.params = {"state_dir": tmp_path}
    return context


def test_exported_solves_and_folders_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to where one is, or by their folder; hidden folders are left out."""
    for name in ("b.moorings", "a.moorings", "notes.txt"):
        (tmp_path / name).touch()
    for name in ("answers", ".git"):
        (tmp_path / name).mkdir()
    (tmp_path / "answers" / "c.moorings").touch()
    monkeypatch.chdir(tmp_path)
    assert list_exported("") == ["a.moorings", "answers/", "b.moorings"]
    assert list_exported("a.") == ["a.moorings"]
    assert list_exported("answers/") == ["answers/c.moorings"]
    assert list_exported(f"{tmp_path}/b") == [f"{tmp_path}/b.moorings"]
    assert list_exported("nowhere/") == []


def test_where_nobody_answers_there_is_nothing_to_complete(
    nobody: typer.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No error ends the line; files are there all the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.moorings").touch()
    assert complete_solves(nobody, "") == []
    assert complete_explained(nobody, "po") == ["pod/"]
    assert complete_explained(nobody, "pod/a") == []
    assert complete_replayed(nobody, "") == ["a.moorings"]


def test_what_a_shell_would_expand_is_not_completed(
    nobody: typer.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names on the bus are anybody's, and one Tab puts them into the line."""
    hostile = ("a$(id)", "a`id`", "a;id", "a*", "a b", "a\nid", "a\x1b[2J", "-s", "a'")

    @asynccontextmanager
    async def meet(*_: object) -> AsyncIterator[None]:
        yield None

    async def ask(_: object) -> list[str]:
        return [*hostile, "team-a/train-1", "pod/a.b_c"]

    monkeypatch.setattr("moorings.cli.completing.connect", meet)
    assert complete_words(nobody, "", ask) == ["team-a/train-1", "pod/a.b_c"]
    assert complete_words(nobody, "a$", ask) == []
    monkeypatch.chdir(tmp_path)
    for name in ("$(id).moorings", "a.moorings"):
        (tmp_path / name).touch()
    assert list_exported("") == ["a.moorings"]


def test_a_line_that_is_completed_has_nothing_else_in_it(tmp_path: Path) -> None:
    """Neither errors nor logs: a shell would show them in the line."""
    environment = {
        "_MOORINGS_COMPLETE": "complete_bash",
        "COMP_WORDS": f"moorings explain --server {NOWHERE} po",
        "COMP_CWORD": "4",
    }
    done = moorings(home=tmp_path, environment=environment)
    assert (done.stdout.split(), done.stderr) == (["pod/"], "")
