"""Quantities against exact decimal arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.quantity import MAX_NANO, MAX_TEXT, NANO, Quantity, QuantityError

FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(10 ** (3 * (i + 1))) for i, suffix in enumerate("kMGTPE")},
    **{f"{s}i": Fraction(1024 ** (i + 1)) for i, s in enumerate("KMGTPE")},
    "e3": Fraction(1000),
    "E-3": Fraction(1, 1000),
    "e+2": Fraction(100),
}
DIGITS = st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}", fullmatch=True)


@given(st.sampled_from(["", "+", "-"]), DIGITS, st.sampled_from(sorted(FACTORS)))
def test_parsing_is_exact_and_rounds_away_from_zero(
    sign: str, digits: str, suffix: str
) -> None:
    """Held against exact fractions."""
    text = f"{sign}{digits}{suffix}"
    whole, _, fraction = digits.partition(".")
    value = Fraction(int((whole + fraction) or "0"), 10 ** len(fraction))
    nano = min(ceil(value * FACTORS[suffix] * NANO), MAX_NANO)

    quantity = Quantity.parse(text)

    assert quantity.nano == (-nano if sign == "-" else nano)
    assert str(quantity) == text


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_quantities_order_like_numbers(a: int, b: int) -> None:
    """Whatever they are written in."""
    left, right = Quantity.of(a), Quantity.parse(f"{b}000m")

    assert (left < right) == (a < b)
    assert (left >= right) == (a >= b)
    assert (left == right) == (a == b)
    assert left != right or hash(left) == hash(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1Gi", "1073741824"),
        ("1.5", "1500m"),
        ("1e3", "1k"),
        ("0.1n", "1n"),
        (".5", "0.5"),
    ],
)
def test_notation_does_not_matter(left: str, right: str) -> None:
    """Equal amounts are equal quantities."""
    assert Quantity.parse(left) == Quantity.parse(right)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("3", 3),
        ("3000m", 3),
        ("3Ki", 3072),
        ("0.5", None),
        ("1500m", None),
        ("1n", None),
    ],
)
def test_what_is_whole_is_told_without_rounding(text: str, units: int | None) -> None:
    """The rule of everything that is counted."""
    assert Quantity.parse(text).whole == units


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 Gi",
        "1gi",
        "1K",
        "Gi",
        "1.2.3",
        "--1",
        "1e",
        "0x1",
        "1,5",
        "٣",
        "NaN",
        "1\n",
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """With an error that shows the text."""
    with pytest.raises(QuantityError, match="is not a quantity"):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (4294967296 * NANO, "4Gi"),
        (-4294967296 * NANO, "-4Gi"),
        (81559 * 2**20 * NANO, "81559Mi"),
        ((2**20 + 2**10) * NANO, "1025Ki"),
        (2**70 * NANO, "1024Ei"),
        (0, "0"),
        (98 * NANO, "98"),
        (1024 * NANO, "1024"),
        (65536 * NANO, "65536"),
        (2_000_000 * NANO, "2M"),
        (10**10 * NANO, "10G"),
        (1_234_567 * NANO, "1234567"),
        (1_500 * 10**6, "1500m"),
        (2_000 * 10**6, "2"),
        (3 * 10**3, "3u"),
        (7, "7n"),
        ((40 << 30) * NANO, "40Gi"),
        (10 * NANO, "10"),
        (NANO // 2, "500m"),
    ],
)
def test_what_we_compute_reads_as_people_write_it(nano: int, text: str) -> None:
    """Large amounts with a suffix; what is counted stays a number."""
    made = Quantity.of_nano(nano)
    assert str(made) == text
    assert Quantity.parse(text) == made


@given(st.integers(-(2**80), 2**80))
def test_however_it_is_written_it_is_the_same_amount(nano: int) -> None:
    for amount in (nano, nano << 20, nano * NANO << 10):
        capped = max(-MAX_NANO, min(MAX_NANO, amount))
        assert Quantity.parse(str(Quantity.of_nano(capped))).nano == capped


def test_a_quantity_cannot_be_changed() -> None:
    """It is a value, and is shared as one."""
    with pytest.raises(AttributeError):
        Quantity.of(1).nano = 2


@pytest.mark.parametrize("text", ["1e5000", "1e9999", "9" * 256, "1e30"])
def test_more_than_kubernetes_counts_is_its_most(text: str) -> None:
    """So every amount can be written down in decimals."""
    assert Quantity.parse(text).nano == MAX_NANO
    assert Quantity.parse("10E") == Quantity.of(10**19)
    if len(text) < MAX_TEXT:
        assert Quantity.parse(f"-{text}").nano == -MAX_NANO
    assert len(str(Quantity.parse(text).nano)) < 64


@pytest.mark.parametrize("text", ["9" * (MAX_TEXT + 1), "1" * 5000, "0." + "1" * 9000])
def test_a_text_of_more_digits_than_anybody_writes_is_none(text: str) -> None:
    """And the error is short."""
    with pytest.raises(QuantityError) as raised:
        Quantity.parse(text)
    assert len(str(raised.value)) < 2 * MAX_TEXT
