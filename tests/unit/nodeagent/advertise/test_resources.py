"""Extended resources as people write them."""

from __future__ import annotations

import pytest

from nodeagent.advertise.resources import read_resources
from nodeagent.errors import ExtendedResourceError


@pytest.mark.parametrize(
    ("amount", "count"),
    [("3", 3), ("3000m", 3), ("3Ki", 3072), ("0", 0), ("3e2", 300), ("2.0", 2)],
)
def test_what_is_an_integer_is_one_however_it_is_written(
    amount: str, count: int
) -> None:
    """As Kubernetes reads quantities."""
    assert read_resources([f"example.com/dongle={amount}"]) == {
        "example.com/dongle": count
    }


@pytest.mark.parametrize("amount", ["0.5", "1500m", "1u", "1.0001"])
def test_nothing_is_rounded(amount: str) -> None:
    """The rule says what an integer is."""
    rule = "must be an integer: 3, 3000m and 3Ki are, 0.5 and 1500m are not"
    with pytest.raises(ExtendedResourceError, match=rule):
        read_resources([f"example.com/dongle={amount}"])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("example.com/dongle", "must be NAME=COUNT"),
        ("dongle=4", "must be a name with a domain"),
        ("kubernetes.io/dongle=4", "must be a name with a domain"),
        ("requests.example.com/dongle=4", "must be a name with a domain"),
        ("example.com/=4", "must be a name with a domain"),
        ("example.com/dongle=", "is not a quantity"),
        ("example.com/dongle=four", "is not a quantity"),
        ("example.com/dongle=-1", "must be from 0"),
        ("example.com/dongle=9223372036854775808", "must be from 0"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(text: str, rule: str) -> None:
    """With the text as it was written."""
    with pytest.raises(ExtendedResourceError, match=rule) as caught:
        read_resources([text])
    assert str(caught.value).startswith(repr(text.partition("=")[0])[:-1])


def test_a_resource_has_one_count() -> None:
    """Even where both are the same."""
    with pytest.raises(ExtendedResourceError, match="appears twice"):
        read_resources(["example.com/dongle=4", "example.com/dongle=4"])
