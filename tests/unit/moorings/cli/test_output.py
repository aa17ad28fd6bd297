"""How answers look."""

from __future__ import annotations

import json
import time

import pytest

from moorings.cli import output
from moorings.cli.output import (
    Format,
    clean,
    notify,
    say,
    show,
    show_progress,
    show_table,
)


def test_a_table_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name", "pods"), [("a" * 300, 1), ("b", "[red]")])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == f"{'NAME':<300}   PODS"
    assert first == f"{'a' * 300}   1"
    assert second == f"{'b':<300}   [red]"


@pytest.mark.parametrize(
    ("form", "out", "err"),
    [
        (Format.TABLE, "", "no pods\n"),
        (Format.JSON, "[]\n", ""),
        (Format.YAML, "[]\n", ""),
    ],
)
def test_an_empty_table_is_said_in_words(
    capsys: pytest.CaptureFixture[str], form: Format, out: str, err: str
) -> None:
    """Beside the answer; for programs it is an empty list."""
    show([], form, ("name",), iter(()), "no pods")
    said = capsys.readouterr()
    assert (said.out, said.err) == (out, err)


def test_words_of_others_are_no_commands_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor markup, nor emoji, nor a line of ours."""
    spell = "\x1b[2J\x9b\u202e[bold]:smile:\x07\nerror: forged\ud800"
    for tell in (say, notify):
        tell(spell)
    show_table(("name",), [(spell,)])
    said = capsys.readouterr()
    for line in (said.out + said.err).splitlines():
        assert line.isprintable()
        assert not line.startswith("error")
    assert said.out.startswith(r"\x1b[2J\x9b\u202e[bold]:smile:\x07")
    assert said.out.splitlines()[1] == r"    error: forged\ud800"


@pytest.mark.parametrize("name", ["plain", "caf\u00e9 \x9b31m", "\U0001f600"])
def test_json_is_ascii_and_says_what_it_is_given(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Not even a terminal that reads eight bits takes it for commands."""
    value = {"name": name, "none": [], "some": [{"seconds": 0.25}]}
    show(value, Format.JSON, (), ())
    printed = capsys.readouterr().out
    assert printed == json.dumps(value, indent=2) + "\n"
    assert printed.isascii()


def test_plain_text_stays_as_it_is() -> None:
    """In any script."""
    assert clean("größer 日本 a b") == "größer 日本 a b"


def test_what_takes_long_says_so_where_it_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is done at the time; beside the answer, not in it."""
    monkeypatch.setattr(output, "_QUIET_S", 0.01)
    said = ""
    with show_progress("planning", asked=True) as tell:
        while "planning (0 s)" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
        tell("deciding")
        while "deciding (" not in said:
            time.sleep(0.01)
            captured = capsys.readouterr()
            said += captured.err
            assert captured.out == ""


def test_what_is_quick_or_not_asked_for_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with show_progress("planning", asked=True):
        pass
    monkeypatch.setattr(output, "_QUIET_S", 0.0)
    with show_progress("planning") as tell:
        tell("deciding")
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
