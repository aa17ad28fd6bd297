"""Ages, as kubectl writes them."""

from __future__ import annotations

import pytest

from moorings.views.ages import format_age


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
