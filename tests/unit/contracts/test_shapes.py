"""Objects are read as Go reads them: nulls are absent, extras are named."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import Device, ResourceSliceSpec
from contracts.errors import DecodeError
from contracts.shapes import read
from contracts.workload import Node

SPEC = {"driver": "d.io", "pool": {"name": "p"}}


def test_nulls_are_absent_on_every_level() -> None:
    """A null field has its default; the input is left as it is."""
    raw: dict[str, Any] = {**SPEC, "nodeName": None, "devices": [{"name": "a"}, None]}
    raw["devices"] = [{"name": "a", "attributes": None, "taints": None}]
    spec = read(raw, ResourceSliceSpec, "slice", [])
    assert spec.node_name is None
    assert spec.devices == (Device(name=spec.devices[0].name),)
    assert "nodeName" in raw
    assert raw["devices"][0]["attributes"] is None


def test_unknown_fields_are_named_by_their_whole_path() -> None:
    """Through lists and maps; what is ignored is not worth naming."""
    attributes = {"x": {"int": 1, "more": 2}}
    raw = {**SPEC, "devices": [{"name": "a", "attributes": attributes}], "odd": 1}
    unknown: list[str] = []
    read(raw, ResourceSliceSpec, "slice", unknown, ignored=frozenset({"odd"}))
    assert unknown == ["devices[0].attributes[x].more"]


def test_of_an_excerpt_only_what_is_needed_is_read() -> None:
    """A Node has many fields that are nobody's business here."""
    unknown: list[str] = []
    raw = {"metadata": {"name": "n"}, "status": {"nodeInfo": {"kernel": "6"}}}
    assert read(raw, Node, "node", unknown).name == "n"
    assert unknown == []


def test_an_error_names_the_key_of_a_map() -> None:
    """Whoever wrote the object is told which of many entries is wrong."""
    attributes = {"x": {"int": 1}, "y": {"int": "one"}}
    raw = {**SPEC, "devices": [{"name": "a", "attributes": attributes}]}
    with pytest.raises(DecodeError) as raised:
        read(raw, ResourceSliceSpec, "slice", [])
    assert raised.value.field == "$.devices[0].attributes[y].int"
