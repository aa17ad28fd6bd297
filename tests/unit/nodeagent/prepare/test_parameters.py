"""Opaque configuration: whose it is, what goes over what, and its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.allocation import DeviceAllocationConfiguration
from nodeagent.errors import PrepareError
from nodeagent.prepare.parameters import make_schema, merge
from tests.builders.prepared import DRIVER, config, parameters

SCHEMA = Path(__file__).parents[4] / "docs" / "schemas" / "device-parameters.json"


def test_a_class_comes_before_a_claim_wherever_it_is_listed() -> None:
    """Key by key; of one source the later goes over the earlier."""
    configs = (
        config(parameters(env={"A": "claim", "B": "claim"}), "FromClaim"),
        config(parameters(env={"A": "class", "C": "class"}), "FromClass"),
        config(parameters(env={"B": "later"}), "FromClaim"),
    )
    assert merge(configs, DRIVER, "gpu").env == {
        "A": "claim",
        "B": "later",
        "C": "class",
    }


@pytest.mark.parametrize(
    ("requests", "holds"),
    [((), True), (("gpu",), True), (("gpu/big",), True), (("gpu/x", "nic"), False)],
)
def test_a_configuration_is_of_the_requests_that_it_names(
    requests: tuple[str, ...], holds: bool
) -> None:
    """Of all if it names none; a request means its alternatives too."""
    merged = merge(
        (config(parameters(env={"A": "b"}), "FromClaim", *requests),), DRIVER, "gpu/big"
    )
    assert merged.env == ({"A": "b"} if holds else {})


def test_what_is_meant_for_others_is_not_read() -> None:
    """Whatever it is."""
    opaque: Any = {"driver": "other.com", "parameters": 7}
    others = [
        DeviceAllocationConfiguration(source="FromClaim", opaque=opaque),
        DeviceAllocationConfiguration(source="FromClaim", opaque=None),
        config({"kind": "no"}, "FromClaim", "nic"),
    ]
    assert merge(others, DRIVER, "gpu").env == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "Expected `object`"),
        ({"kind": "DeviceParameters"}, "apiVersion"),
        (parameters(more=1), "more"),
        (parameters(env={"A B": "c"}), "env"),
        (parameters(env={"A": "b\0"}), "env"),
        (parameters(env={"A": 1}), "env"),
        (parameters(partition={"a": [1]}), "partition"),
        (parameters(env={f"A{i}": "" for i in range(65)}), "length <= 64"),
    ],
)
def test_what_is_not_as_the_schema_says_is_named(given: Any, said: str) -> None:
    """With its place in the allocation and where it came from."""
    with pytest.raises(PrepareError, match=said) as refused:
        merge((config(parameters()), config(given)), DRIVER, "gpu")
    assert str(refused.value).startswith("status.allocation.devices.config[1].opaque")
    assert "(FromClaim)" in str(refused.value)


def test_the_published_schema_is_that_of_the_code() -> None:
    """Written out so that an editor finds it."""
    assert json.loads(SCHEMA.read_text()) == make_schema()
