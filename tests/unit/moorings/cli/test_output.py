"""How answers look."""

from __future__ import annotations

import pytest

from moorings.cli.output import clean, notify, say, show_table


def test_a_table_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name", "pods"), [("a" * 300, 1), ("b", "[red]")])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == f"{'NAME':<300}   PODS"
    assert first == f"{'a' * 300}   1"
    assert second == f"{'b':<300}   [red]"


def test_words_of_others_are_no_commands_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor markup, nor emoji, nor a line of ours."""
    spell = "\x1b[2J\x9b\u202e[bold]:smile:\x07\nerror: forged\ud800"
    for show in (say, notify):
        show(spell)
    show_table(("name",), [(spell,)])
    said = capsys.readouterr()
    for line in (said.out + said.err).splitlines():
        assert line.isprintable()
        assert not line.startswith("error")
    assert said.out.startswith(r"\x1b[2J\x9b\u202e[bold]:smile:\x07")
    assert said.out.splitlines()[1] == r"    error: forged\ud800"


def test_plain_text_stays_as_it_is() -> None:
    """In any script."""
    assert clean("größer 日本 a b") == "größer 日本 a b"
