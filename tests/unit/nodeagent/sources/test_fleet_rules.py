"""Each rule of a fleet file, by the field that breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.names import API_VERSION, RAIL
from nodeagent.errors import SettingsError
from nodeagent.sources.attributes import VersionValue
from nodeagent.sources.fleet import DeviceSpec, Fleet, NodeShapeSpec, TopologyRule
from nodeagent.sources.fleet_rules import check_fleet
from tests.builders import quantities

GPUS = DeviceSpec(driver="gpu.example.com", count=8, name="gpu-{index}")
SHAPE = NodeShapeSpec(shape="big", count=2, devices=(GPUS,))
FLEET = Fleet(api_version=API_VERSION, kind="Fleet", name="lab", nodes=(SHAPE,))


def field_of(fleet: Fleet) -> str:
    """Say which field a fleet is refused for."""
    with pytest.raises(SettingsError) as raised:
        check_fleet(fleet, "lab.yaml")
    assert str(raised.value).startswith("lab.yaml")
    return raised.value.field


def test_a_fleet_that_breaks_no_rule_is_accepted() -> None:
    """All that has a default may be left out."""
    check_fleet(FLEET, "lab.yaml")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"api_version": "v1"}, "apiVersion"),
        ({"kind": "Cluster"}, "kind"),
        ({"name": "Lab"}, "name"),
        ({"nodes": ()}, "nodes"),
        ({"nodes": (SHAPE, SHAPE)}, "nodes[1].shape"),
        ({"nodes": (replace(SHAPE, count=100_001),)}, "nodes"),
        ({"topology": (TopologyRule(label="rack", value="r{index}"),)}, "topology[0]"),
        (
            {"topology": (TopologyRule(label="rack", value="{node}", nodes=1),)},
            "topology[0].value",
        ),
    ],
)
def test_a_fleet_is_refused_by_its_field(change: dict[str, Any], field: str) -> None:
    """Names, limits and rules of topology."""
    assert field_of(replace(FLEET, **change)) == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"shape": "Big"}, "shape"),
        ({"count": 0}, "count"),
        ({"name": "big"}, "name"),
        ({"name": "big-{node}"}, "name"),
        ({"labels": {"a b": "c"}}, "labels[a b]"),
        ({"resources": quantities({"cpu": -1})}, "resources[cpu]"),
    ],
)
def test_a_shape_is_refused_by_its_field(change: dict[str, Any], field: str) -> None:
    """Two nodes must not get one name."""
    fleet = replace(FLEET, nodes=(replace(SHAPE, **change),))
    assert field_of(fleet) == f"nodes[0].{field}"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"driver": "a" * 64}, ".driver"),
        ({"count": 1025}, ".count"),
        ({"name": "gpu"}, ".name"),
        ({"pool": "{index}"}, ".pool"),
        ({"uuid_prefix": ""}, ".uuidPrefix"),
        ({"rails": 9}, ".rails"),
        ({"attributes": {"a b": 1}}, ".attributes[a b]"),
        ({"attributes": {"v": VersionValue(version="1")}}, ".attributes[v]"),
        ({"attributes": {"i": 2**63}}, ".attributes[i]"),
        ({"attributes": {RAIL: 1}}, f".attributes[{RAIL}]"),
        ({"attributes": {f"a{i}": i for i in range(29)}}, ""),
        ({"capacity": quantities({"memory": -1})}, ".capacity[memory]"),
    ],
)
def test_devices_are_refused_by_their_field(change: dict[str, Any], field: str) -> None:
    """DRA's limits on names and attributes, and what the fleet sets itself."""
    shape = replace(SHAPE, devices=(replace(GPUS, **change),))
    fleet = replace(FLEET, nodes=(shape,))
    assert field_of(fleet) == f"nodes[0].devices[0]{field}"
