"""The fleet file: which nodes and devices a simulated cluster has.

Reads the text and refuses what breaks a rule, naming file, field and rule; `expand.py`
makes nodes of it. Pure. The format is described in docs/fleet.md.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from contracts.quantity import Quantity
from nodeagent.sources.attributes import AttributeValue
from nodeagent.sources.settings import SettingsPart, read_settings
from nodeagent.sources.source_spec import SourceSpec


class SimulatedSpec(SourceSpec, frozen=True, kw_only=True, tag="simulated"):
    """Devices of a fleet file: those of the node of this name."""

    fleet: Annotated[str, Meta(min_length=1)]
    """Path of the fleet file, if not absolute from the folder of the sources file."""
    faults_file: str = ""
    """A file of faults that is read again when it changes."""


class DeviceSpec(SettingsPart, frozen=True, kw_only=True):
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


class NodeShapeSpec(SettingsPart, frozen=True, kw_only=True):
    """Nodes that are alike but for their names."""

    shape: str
    count: int
    name: str = "{shape}-{index}"
    """Pattern of the nodes' names."""
    labels: dict[str, str] = {}
    """Patterns, as for names."""
    resources: dict[str, Quantity] = {}
    devices: tuple[DeviceSpec, ...] = ()


class TopologyRule(SettingsPart, frozen=True, kw_only=True):
    """A label by which nodes are grouped: in blocks, or in turn."""

    label: str
    value: str
    """Pattern with `{index}`, the number of the group."""
    nodes: int = 0
    """Neighbours in a group: node `n` of the fleet is in group `n / nodes`."""
    groups: int = 0
    """Groups in turn: node `n` is in group `n mod groups`."""


SIMULATED = "Simulated"
"""The code of faults that do not say another."""


class FaultSpec(SettingsPart, frozen=True, kw_only=True, rename={"duration": "for"}):
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
    reason: str = SIMULATED
    """The code of it; see `NODEAGENT_EVICT_REASONS`."""


class Fleet(SettingsPart, frozen=True, kw_only=True):
    """A fleet file."""

    api_version: str
    kind: str
    name: str
    seed: int = 0
    topology: tuple[TopologyRule, ...] = ()
    nodes: tuple[NodeShapeSpec, ...]
    faults: tuple[FaultSpec, ...] = ()


class FaultsFile(SettingsPart, frozen=True, kw_only=True):
    """A faults file: faults that come and go while the agent runs."""

    faults: tuple[FaultSpec, ...] = ()


def read_fleet(text: str, file: str) -> Fleet:
    """Read the shape of a fleet file; `fleet_rules.check` judges what it says.

    Raises:
        SettingsError: no YAML, an unknown key, or a value of the wrong type.
    """
    return read_settings(text, file, Fleet)


def read_faults(text: str, file: str) -> tuple[FaultSpec, ...]:
    """Read a faults file; an empty one has no faults.

    Raises:
        SettingsError: as `read_fleet`.
    """
    return read_settings(text or "{}", file, FaultsFile).faults
