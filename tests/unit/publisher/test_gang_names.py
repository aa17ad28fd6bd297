"""Names that are made ones which a gang may have."""

from __future__ import annotations

from publisher.gang_names import shorten_gang_name


def test_a_long_name_becomes_a_label() -> None:
    """Two that begin alike have two names; a name that is a label stays."""
    names = {shorten_gang_name("w" * 70 + end) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)
    assert shorten_gang_name("w" * 63) == "w" * 63


def test_a_short_name_ends_as_a_label_may() -> None:
    """What is cut off leaves no dot before the digest."""
    name = shorten_gang_name("w" * 51 + "." + "w" * 30)
    assert name.startswith("w" * 51 + "-")
    assert "." not in name
