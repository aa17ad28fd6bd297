"""Rules of a fleet file: DRA's limits on names and attributes, and consistency.

Stands apart from the format so that each rule is one line with its field. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from contracts import names
from nodeagent.errors import SettingsError
from nodeagent.sources.attributes import VersionValue
from nodeagent.sources.fleet import (
    DeviceSpec,
    Fleet,
    NodeShapeSpec,
    TopologyRule,
)
from nodeagent.sources.template import find_unknown_placeholders

MAX_NODES = 100_000
MAX_DEVICES = 1_024
"""Of one node and driver."""
MAX_QUALIFIED = 32
"""Attributes and capacities of a device together (DRA)."""
MAX_TEXT = 64
"""Characters of an attribute's text or version (DRA)."""
NODE_PLACEHOLDERS = frozenset({"shape", "index", "position"})
DEVICE_PLACEHOLDERS = frozenset({"node", "index", "numa", "root", "rail"})

_BUILT_IN = 5
"""uuid, simulated, numaNode, pcieRoot, rail."""
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    re.ASCII,
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_LABEL_KEY = re.compile(r"([^/]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
_VERSION = re.compile(
    r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII
)
_UUID_PREFIX = re.compile(r"[A-Za-z0-9-]{1,24}", re.ASCII)

BrokenRule = tuple[str, str]
"""Field and rule."""


def check_fleet(fleet: Fleet, file: str) -> None:
    """Refuse a fleet at the first rule it breaks.

    Raises:
        SettingsError: names the file, the field and the rule.
    """
    for field, rule in _check_fleet(fleet):
        raise SettingsError(file, field, rule)


def is_subdomain(name: str) -> bool:
    """True if Kubernetes accepts it as the name of a node, pool or driver."""
    return _SUBDOMAIN.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """True if Kubernetes accepts it as the value of a label."""
    return _LABEL_VALUE.fullmatch(text) is not None


def _check_fleet(fleet: Fleet) -> Iterator[BrokenRule]:
    if fleet.api_version != names.API_VERSION:
        yield "apiVersion", f"must be {names.API_VERSION}"
    if fleet.kind != "Fleet":
        yield "kind", "must be Fleet"
    if not is_subdomain(fleet.name):
        yield "name", "must be a lowercase DNS name"
    if not fleet.nodes:
        yield "nodes", "must have at least one shape"
    if sum(max(shape.count, 0) for shape in fleet.nodes) > MAX_NODES:
        yield "nodes", f"must be at most {MAX_NODES} nodes together"
    for index, rule in enumerate(fleet.topology):
        yield from _check_topology(f"topology[{index}]", rule)
    shape_names: set[str] = set()
    for index, shape in enumerate(fleet.nodes):
        if shape.shape in shape_names:
            yield f"nodes[{index}].shape", f"{shape.shape!r} is used twice"
        shape_names.add(shape.shape)
        yield from _check_shape(f"nodes[{index}]", shape)


def _check_topology(at: str, rule: TopologyRule) -> Iterator[BrokenRule]:
    yield from _check_label_key(f"{at}.label", rule.label)
    yield from _check_placeholders(f"{at}.value", rule.value, {"index"})
    if (rule.nodes > 0) == (rule.groups > 0):
        yield at, "must have exactly one of nodes and groups, above 0"


def _check_shape(at: str, shape: NodeShapeSpec) -> Iterator[BrokenRule]:
    if not is_subdomain(shape.shape):
        yield f"{at}.shape", "must be a lowercase DNS name"
    if shape.count < 1:
        yield f"{at}.count", "must be at least 1"
    yield from _check_placeholders(
        f"{at}.name", shape.name, NODE_PLACEHOLDERS | {"node"}
    )
    if shape.count > 1 and not re.search(r"\{(index|position)\b", shape.name):
        yield f"{at}.name", "must have {index} or {position}: names would be equal"
    for key, value in shape.labels.items():
        yield from _check_label_key(f"{at}.labels[{key}]", key)
        yield from _check_placeholders(f"{at}.labels[{key}]", value, NODE_PLACEHOLDERS)
    for name, amount in shape.resources.items():
        if amount.nano < 0:
            yield f"{at}.resources[{name}]", "must not be negative"
    for index, spec in enumerate(shape.devices):
        yield from _check_devices(f"{at}.devices[{index}]", spec)


def _check_devices(at: str, spec: DeviceSpec) -> Iterator[BrokenRule]:
    if not is_subdomain(spec.driver) or len(spec.driver) > 63:
        yield f"{at}.driver", "must be a lowercase DNS name of at most 63 characters"
    if not 1 <= spec.count <= MAX_DEVICES:
        yield f"{at}.count", f"must be between 1 and {MAX_DEVICES}"
    yield from _check_placeholders(f"{at}.name", spec.name, DEVICE_PLACEHOLDERS)
    if spec.count > 1 and "{index" not in spec.name:
        yield f"{at}.name", "must have {index}: names would be equal"
    yield from _check_placeholders(f"{at}.pool", spec.pool, {"node"})
    if not _UUID_PREFIX.fullmatch(spec.uuid_prefix):
        yield f"{at}.uuidPrefix", "must be 1 to 24 letters, digits or dashes"
    groups = {
        "numaNodes": spec.numa_nodes,
        "pcieRoots": spec.pcie_roots,
        "rails": spec.rails,
    }
    for field, count in groups.items():
        if not 0 <= count <= spec.count:
            yield f"{at}.{field}", f"must be between 0 and count ({spec.count})"
    yield from _check_qualified(at, spec)


def _check_qualified(at: str, spec: DeviceSpec) -> Iterator[BrokenRule]:
    if len(spec.attributes) + len(spec.capacity) + _BUILT_IN > MAX_QUALIFIED:
        yield (
            at,
            f"must have at most {MAX_QUALIFIED - _BUILT_IN} attributes and capacities",
        )
    for name, value in spec.attributes.items():
        path = f"{at}.attributes[{name}]"
        yield from _check_qualified_name(path, name, spec)
        if isinstance(value, str):
            yield from _check_placeholders(path, value, DEVICE_PLACEHOLDERS)
        elif isinstance(value, VersionValue):
            if not _VERSION.fullmatch(value.version):
                yield path, "must be a semantic version such as 1.2.3"
        elif not -(2**63) <= value < 2**63:
            yield path, "must fit 64 bits"
    for name, amount in spec.capacity.items():
        path = f"{at}.capacity[{name}]"
        yield from _check_qualified_name(path, name, spec)
        if amount.nano < 0:
            yield path, "must not be negative"


def _check_qualified_name(
    path: str, name: str, spec: DeviceSpec
) -> Iterator[BrokenRule]:
    domain, slash, identifier = name.rpartition("/")
    if not _IDENTIFIER.fullmatch(identifier):
        yield path, "must be an identifier, or domain/identifier"
    if slash and (not is_subdomain(domain) or len(domain) > 63):
        yield path, "must have a lowercase DNS name before the slash"
    if name in list_built_in_attributes(spec):
        yield path, "is set by the fleet itself: use numaNodes, pcieRoots or rails"


def list_built_in_attributes(spec: DeviceSpec) -> Mapping[str, int]:
    """Names that a device gets without being asked, with their number of groups."""
    return {
        "uuid": 1,
        names.SIMULATED: 1,
        "resource.kubernetes.io/numaNode": spec.numa_nodes,
        "resource.kubernetes.io/pcieRoot": spec.pcie_roots,
        names.RAIL: spec.rails,
    }


def _check_label_key(field: str, key: str) -> Iterator[BrokenRule]:
    if not _LABEL_KEY.fullmatch(key):
        yield field, "must be the key of a label"


def _check_placeholders(
    field: str, text: str, allowed: Collection[str]
) -> Iterator[BrokenRule]:
    for placeholder in find_unknown_placeholders(text, allowed):
        listed = ", ".join(f"{{{name}}}" for name in sorted(allowed))
        yield field, f"has {placeholder!r}; only {listed} can be filled in"
