"""The fleet file: which nodes and devices a simulated cluster has.

Reads the text and refuses what breaks a rule, naming file, field and rule; `expand.py`
makes nodes of it. Pure. The format is described in docs/fleet.md.
"""

from __future__ import annotations

from typing import Any, TypeVar

import yaml
from msgspec import Struct

from contracts.codec import convert
from contracts.errors import DecodeError
from contracts.quantity import Quantity
from nodeagent.errors import FleetError

T = TypeVar("T")


class FleetPart(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A part of a fleet file: a key that nobody knows is a mistake."""


class VersionValue(FleetPart, frozen=True, kw_only=True):
    """An attribute that is a semantic version."""

    version: str


AttributeValue = bool | int | str | VersionValue


class DeviceSpec(FleetPart, frozen=True, kw_only=True):
    """Devices of one driver on every node of a shape."""

    driver: str
    count: int
    name: str
    """Pattern with `{index}`."""
    pool: str = "{node}"
    attributes: dict[str, AttributeValue] = {}
    capacity: dict[str, Quantity] = {}
    numa_nodes: int = 0
    """So many groups of equal size, in order of index; 0: not said."""
    pcie_roots: int = 0
    """Groups, as for `numa_nodes`."""
    rails: int = 0
    """Groups, as for `numa_nodes`."""
    uuid_prefix: str = "DEV"


class NodeShapeSpec(FleetPart, frozen=True, kw_only=True):
    """Nodes that are alike but for their names."""

    shape: str
    count: int
    name: str = "{shape}-{index}"
    """Pattern of the nodes' names."""
    labels: dict[str, str] = {}
    """Patterns, as for names."""
    resources: dict[str, Quantity] = {}
    devices: tuple[DeviceSpec, ...] = ()


class TopologyRule(FleetPart, frozen=True, kw_only=True):
    """A label by which nodes are grouped: in blocks, or in turn."""

    label: str
    value: str
    """Pattern with `{index}`, the number of the group."""
    nodes: int = 0
    """Neighbours in a group: node `n` of the fleet is in group `n / nodes`."""
    groups: int = 0
    """Groups in turn: node `n` is in group `n mod groups`."""


class FaultSpec(FleetPart, frozen=True, kw_only=True, rename={"duration": "for"}):
    """Something that goes wrong at a time, for a time."""

    node: str
    """Name or glob."""
    verdict: str
    device: str = "*"
    """Name or glob; `Away` is about the node and takes none."""
    at: str = "0s"
    duration: str = ""
    """Empty: for good."""
    jitter: str = "0s"
    """Each node's fault starts up to so much later, by the fleet's seed."""
    message: str = ""


class Fleet(FleetPart, frozen=True, kw_only=True):
    """A fleet file."""

    api_version: str
    kind: str
    name: str
    seed: int = 0
    topology: tuple[TopologyRule, ...] = ()
    nodes: tuple[NodeShapeSpec, ...]
    faults: tuple[FaultSpec, ...] = ()


class FaultsFile(FleetPart, frozen=True, kw_only=True):
    """A faults file: faults that come and go while the agent runs."""

    faults: tuple[FaultSpec, ...] = ()


def read_fleet(text: str, file: str) -> Fleet:
    """Read the shape of a fleet file; `fleet_rules.check` judges what it says.

    Raises:
        FleetError: no YAML, an unknown key, or a value of the wrong type.
    """
    return _read(text, file, Fleet)


def read_faults(text: str, file: str) -> tuple[FaultSpec, ...]:
    """Read a faults file; an empty one has no faults.

    Raises:
        FleetError: as `read_fleet`.
    """
    return _read(text or "{}", file, FaultsFile).faults


def _read(text: str, file: str, kind: type[T]) -> T:
    try:
        value: Any = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark else ""
        raise FleetError(file, line, f"is no YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FleetError(file, "", f"is no YAML: {error}") from error
    try:
        return convert(value, kind, file)
    except DecodeError as error:
        field = error.field.removeprefix("$").removeprefix(".")
        raise FleetError(file, field, error.reason) from error
