"""Semantic versions: what is one, and which is greater."""

from __future__ import annotations

import pytest

from solver.selectors.semver import is_semver, normalize_version, precedence_of

ASCENDING = [
    "0.0.1",
    "1.0.0-0",
    "1.0.0-9",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.9.0",
    "1.10.0",
    "10.0.0",
]


def test_precedence_follows_the_specification() -> None:
    """The order of semver.org, pre-releases included."""
    ranks = [precedence_of(text) for text in ASCENDING]
    assert all(rank is not None for rank in ranks)
    assert sorted(ranks, key=lambda rank: rank or ()) == ranks
    assert len(set(ranks)) == len(ASCENDING)


def test_build_metadata_does_not_count() -> None:
    """Two builds of one version are equal."""
    assert precedence_of("1.0.0+a.b") == precedence_of("1.0.0")


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.2", "01.0.0", "1.0.0-01", "v1.0.0", "1.0.0-", "1.0.0+", "1.0.0\n"],
)
def test_a_malformed_version_is_none(text: str) -> None:
    """To the letter of the specification."""
    assert not is_semver(text)


def test_numbers_fit_64_bits() -> None:
    """As in the library that upstream uses."""
    assert is_semver(f"{2**64 - 1}.0.0")
    assert not is_semver(f"{2**64}.0.0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.2", "1.2.0"),
        ("1", "1.0.0"),
        ("01.02.003-rc.1", "1.2.3-rc.1"),
        ("0.00.0", "0.0.0"),
        ("v1.0.0+b", "1.0.0+b"),
    ],
)
def test_normalising_mends_what_is_common(text: str, expected: str) -> None:
    """A leading v, and missing parts."""
    assert normalize_version(text) == expected


@pytest.mark.parametrize("text", ["", "v", "a", "1.2.3.4", "1..2", ".1"])
def test_normalising_mends_no_nonsense(text: str) -> None:
    """What it cannot mend stays no version."""
    assert not is_semver(normalize_version(text))


@pytest.mark.parametrize(
    "text", ["1" * 5000 + ".0.0", "1.0.0-" + "9" * 5000, "1.0.0+" + "a" * 5000]
)
def test_a_version_of_thousands_of_digits_is_none(text: str) -> None:
    """Whoever compares it is told so, and nothing ends."""
    assert precedence_of(text) is None
    assert not is_semver(text)
