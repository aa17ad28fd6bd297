"""Placeholders in the texts of a fleet file, and nothing more than that."""

from __future__ import annotations

import pytest

from nodeagent.sources.template import fill, find_unknown_placeholders


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("gpu", "gpu"),
        ("gpu-{index}", "gpu-26"),
        ("gpu-{index:03}", "gpu-026"),
        ("0x{index:x}", "0x1a"),
        ("{index:04x}", "001a"),
        ("{node}/{index}", "n/26"),
    ],
)
def test_numbers_are_filled_in_as_the_text_says(text: str, filled: str) -> None:
    """Padded with zeros, or in hex."""
    assert fill(text, {"index": 26, "node": "n"}) == filled


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("{index}-{index:02}", ()),
        ("{node}", ("{node}",)),
        ("{index.real}", ("{index.real", "}")),
        ("{index:999}", ("{index:999", "}")),
        ("a{", ("{",)),
    ],
)
def test_what_no_placeholder_may_be_is_found(
    text: str, unknown: tuple[str, ...]
) -> None:
    """Names that nobody fills in, and what format strings could do besides."""
    assert find_unknown_placeholders(text, {"index"}) == unknown
