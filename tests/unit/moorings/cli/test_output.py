"""How answers look."""

from __future__ import annotations

import pytest

from moorings.cli.output import format_age, show_table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h0m"),
        (172_799, "47h59m"),
        (180_000, "2d2h"),
    ],
)
def test_ages_have_two_units_at_most(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


def test_a_table_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name", "pods"), [("a" * 300, 1), ("b", "[red]")])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == f"{'NAME':<300}   PODS"
    assert first == f"{'a' * 300}   1"
    assert second == f"{'b':<300}   [red]"
