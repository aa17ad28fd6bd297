"""The sources file: where the devices of one node come from.

Read strictly: whatever a source does not know is refused with file, field and rule. Its
JSON schema is made of the same Structs. Described in docs/drivers.md. Pure.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from contracts import names
from contracts.ids import DriverName, NodeName, PoolID
from contracts.quantity import Quantity
from nodeagent.errors import SettingsError
from nodeagent.sources.command.settings import CommandSpec
from nodeagent.sources.counted import CountedSpec
from nodeagent.sources.fleet import SimulatedSpec
from nodeagent.sources.nvml.spec import NvmlSpec
from nodeagent.sources.settings import SettingsPart, read_settings
from nodeagent.sources.source_spec import DeviceSourceSpec, check_source
from nodeagent.sources.sysfs.spec import SysfsSpec

MAX_SOURCES = 64

AnySourceSpec = CommandSpec | CountedSpec | NvmlSpec | SimulatedSpec | SysfsSpec
"""Every kind of source."""


class SourcesFile(SettingsPart, frozen=True, kw_only=True):
    """A sources file."""

    api_version: str
    kind: str
    sources: Annotated[tuple[AnySourceSpec, ...], Meta(max_length=MAX_SOURCES)]


def read_sources(text: str, file: str, node: NodeName) -> tuple[AnySourceSpec, ...]:
    """Read a sources file for a node.

    Raises:
        SettingsError: the file breaks a rule; names file, field and rule.
    """
    found = read_settings(text, file, SourcesFile)
    if found.api_version != names.API_VERSION:
        raise SettingsError(file, "apiVersion", f"must be {names.API_VERSION}")
    if found.kind != "Sources":
        raise SettingsError(file, "kind", "must be Sources")
    fields_by_name: dict[str, str] = {}
    fields_by_pool: dict[PoolID, str] = {}
    fields_by_driver: dict[DriverName, tuple[str, bool]] = {}
    for index, spec in enumerate(found.sources):
        at = f"sources[{index}]"
        for field, rule in check_source(spec, node):
            raise SettingsError(file, f"{at}.{field}", rule)
        other = fields_by_name.setdefault(spec.name, at)
        if other != at:
            raise SettingsError(file, f"{at}.name", f"{other} has this name too")
        if isinstance(spec, DeviceSourceSpec):
            pool = PoolID(spec.driver, spec.pool_of(node))
            other = fields_by_pool.setdefault(pool, at)
            if other != at:
                rule = f"{other} has the pool {pool.pool!r} of {pool.driver!r} too"
                raise SettingsError(file, f"{at}.pool", rule)
            said = fields_by_driver.setdefault(spec.driver, (at, spec.health_only))
            if said[1] != spec.health_only:
                rule = f"{said[0]} says otherwise of the driver {spec.driver!r}"
                raise SettingsError(file, f"{at}.healthOnly", rule)
    return found.sources


def make_schema() -> dict[str, Any]:
    """Make the JSON schema (2020-12) of a sources file."""
    return msgspec.json.schema(SourcesFile, schema_hook=_describe_kind)


def _describe_kind(kind: type) -> dict[str, Any]:
    if kind is Quantity:
        return {"type": ["string", "integer"], "description": "A Kubernetes quantity."}
    raise NotImplementedError(kind.__name__)
