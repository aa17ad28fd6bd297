"""Kubernetes' CEL types as messages with one text."""

from __future__ import annotations

import pytest

from solver.cel.messages import CIDR, IP, QUANTITY, SEMVER, InputError, text_of


def test_the_text_of_a_message_is_read_by_its_kind() -> None:
    """A function gets what it was declared for."""
    assert text_of(SEMVER(value="1.0.0"), SEMVER) == "1.0.0"


@pytest.mark.parametrize("kind", [SEMVER, IP, CIDR])
def test_another_kind_has_no_such_overload(kind: object) -> None:
    """The engine tells messages not apart when it calls Python: we must."""
    with pytest.raises(InputError, match="no such overload"):
        text_of(QUANTITY(value="1"), kind)


def test_messages_of_equal_text_are_equal_within_a_kind_only() -> None:
    """So the text must be the same for equal values."""
    assert QUANTITY(value="1") == QUANTITY(value="1")
    assert QUANTITY(value="1") != SEMVER(value="1")
