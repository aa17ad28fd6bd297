"""Quotas as an operator writes them."""

from __future__ import annotations

import pytest

from contracts.ids import DriverName, Namespace
from solver.errors import QuotaError
from solver.quotas import ALL_DRIVERS, Quotas

GPU = DriverName("gpu.example.com")


def test_a_namespace_s_own_number_counts_before_that_of_every_namespace() -> None:
    """Driver by driver: what it says nothing of is as for everybody."""
    lines = ["*=64", "*/gpu.example.com=8", " team-a/gpu.example.com = 32"]
    quotas = Quotas.read(lines, of_drivers=True)
    assert quotas.of(Namespace("team-b")) == {ALL_DRIVERS: 64, GPU: 8}
    assert quotas.of(Namespace("team-a")) == {ALL_DRIVERS: 64, GPU: 32}
    assert Quotas.read([], of_drivers=True).of(Namespace("team-a")) == {}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("team-a", "must be NAMESPACE[/DRIVER]=NUMBER"),
        ("=4", "must be"),
        ("team-a/=4", "must be"),
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
        Quotas.read([line], of_drivers=True)
    assert line in str(caught.value)
    assert why in str(caught.value)


def test_one_line_says_it_and_no_driver_where_none_counts() -> None:
    """Of two numbers nobody knows which was meant."""
    with pytest.raises(QuotaError, match="twice"):
        Quotas.read(["a=1", "a=2"], of_drivers=False)
    with pytest.raises(QuotaError, match="must be NAMESPACE=NUMBER"):
        Quotas.read(["a/gpu.example.com=1"], of_drivers=False)
