"""Quotas of waiting gangs as an operator writes them."""

from __future__ import annotations

import pytest

from contracts.ids import Namespace
from solver.errors import QuotaError
from solver.quotas import Quotas


def test_a_namespace_s_own_number_counts_before_that_of_every_namespace() -> None:
    """What a namespace says nothing of is as for everybody."""
    quotas = Quotas.read(["*=64", " team-a = 32"])
    assert quotas.of(Namespace("team-b")) == 64
    assert quotas.of(Namespace("team-a")) == 32
    assert Quotas.read([]).of(Namespace("team-a")) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("team-a", "must be NAMESPACE=NUMBER"),
        ("=4", "must be"),
        ("team-a/gpu.example.com=4", "must be NAMESPACE=NUMBER"),
        ("team-a=", "'' is no number"),
        ("team-a=-1", "'-1' is no number"),
        ("team-a=1e3", "'1e3' is no number"),
        ("team-a=٣", "is no number"),
        ("team-a=9999999999", "more than"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, why: str) -> None:
    """A quota that is misspelt would silently limit nobody."""
    with pytest.raises(QuotaError) as caught:
        Quotas.read([line])
    assert line in str(caught.value)
    assert why in str(caught.value)


def test_one_line_says_it() -> None:
    """Of two numbers nobody knows which was meant."""
    with pytest.raises(QuotaError, match="twice"):
        Quotas.read(["a=1", "a=2"])
