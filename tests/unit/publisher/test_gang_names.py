"""Names that are made ones which a gang may have."""

from __future__ import annotations

import pytest

from publisher.gang_names import is_part_of, name_part, shorten_gang_name


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


@pytest.mark.parametrize("member", ["main", "m" * 63])
def test_parts_of_a_member_are_labels_that_name_it(member: str) -> None:
    assert name_part(member, 1) == member
    later = name_part(member, 5000)
    assert len(later) <= 63
    assert is_part_of(later, member)
    assert not is_part_of(member, member)
    assert not is_part_of(later, "other")
    assert not is_part_of("main-domain-x", "main")
