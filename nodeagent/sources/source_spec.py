"""Settings that all sources share in the sources file, and their rules.

Each kind of source adds a Struct of its own with its settings, tagged by its kind, to
the union in `source_file.py`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import isabs, normpath
from typing import Annotated

from msgspec import Meta

from contracts.device import Device
from contracts.ids import DeviceName, DriverName, NodeName, PoolName
from contracts.validate import names
from contracts.validate.devices import check_device
from contracts.validate.violation import Violations
from nodeagent.cdi import ContainerEdits, find_violations
from nodeagent.sources.attributes import AttributeValue, make_attribute
from nodeagent.sources.settings import SettingsPart
from nodeagent.sources.template import fill, find_unknown_placeholders

BrokenRule = tuple[str, str]
"""Field and rule."""

Seconds = Annotated[float, Meta(gt=0, le=3600)]


Argument = Annotated[str, Meta(max_length=4096)]
Command = Annotated[tuple[Argument, ...], Meta(max_length=64)]
"""An executable with its arguments; no shell reads them."""


class DevicePrograms(SettingsPart, frozen=True, kw_only=True):
    """Programs that make a device what a claim needs, and undo it."""

    set_up: Command = ()
    """Run before containers get the device; absolute path, and arguments."""
    tear_down: Command = ()
    """Run when the claim needs it no more."""
    limit_seconds: Annotated[float, Meta(gt=0, le=30)] = 10.0
    """Each run has ended by then, or is killed and counts as failed."""


class SourceSpec(SettingsPart, frozen=True, kw_only=True, tag_field="kind"):
    """One source of the sources file."""

    name: Annotated[str, Meta(max_length=63)]
    """Names it in logs and errors; each source has another."""
    read_seconds: Seconds = 1.0
    """How often its devices are read."""

    def find_broken_rules(self) -> Iterator[BrokenRule]:
        """Yield the rules of its own kind that the source breaks."""
        yield from ()


class DeviceSourceSpec(SourceSpec, frozen=True, kw_only=True):
    """A source whose devices are of one driver, in one pool."""

    driver: Annotated[DriverName, Meta(min_length=1, max_length=63)]
    pool: Annotated[str, Meta(max_length=253)] = "{node}"
    """Name of the pool; `{node}` is filled in. No two sources share a pool."""
    attributes: dict[str, AttributeValue] = {}
    """Added to each device; they win over what the source says."""
    edits: ContainerEdits = ContainerEdits()
    """Added to what a container gets with each device (CDI)."""
    programs: DevicePrograms = DevicePrograms()
    """Run for each device of a claim that is prepared."""
    health_only: bool = False
    """Another driver publishes and prepares the devices; only their health is told."""

    def pool_of(self, node: NodeName) -> PoolName:
        """Return the name of the pool on a node."""
        return PoolName(fill(self.pool, {"node": node}))


def check_source(spec: SourceSpec, node: NodeName) -> Iterator[BrokenRule]:
    """Yield the rules for all kinds that a source breaks."""
    yield from _to_rules(names.check_dns_label(spec.name, "name"))
    yield from spec.find_broken_rules()
    if not isinstance(spec, DeviceSourceSpec):
        return
    yield from _to_rules(names.check_driver_name(spec.driver, "driver"))
    for placeholder in find_unknown_placeholders(spec.pool, {"node"}):
        yield "pool", f"has {placeholder!r}; only {{node}} can be filled in"
        return
    yield from _to_rules(names.check_pool_name(spec.pool_of(node), "pool"))
    added = Device(
        name=DeviceName("any"),
        attributes={key: make_attribute(v) for key, v in spec.attributes.items()},
    )
    yield from _to_rules(check_device(added, "", selects_nodes=False))
    for violation in find_violations(spec.edits):
        yield "edits", violation
    programs = {"setUp": spec.programs.set_up, "tearDown": spec.programs.tear_down}
    for name, command in programs.items():
        yield from check_command(f"programs.{name}", command)
    additions = (spec.attributes, spec.edits, spec.programs)
    if spec.health_only and additions != ({}, ContainerEdits(), DevicePrograms()):
        rule = "attributes, edits and programs are for devices that are announced"
        yield "healthOnly", rule


def check_command(field: str, command: tuple[str, ...]) -> Iterator[BrokenRule]:
    """Require an absolute path, and no NUL in any argument; empty is no command."""
    for program in command[:1]:
        if not isabs(program) or normpath(program) != program:
            rule = f"{program!r}: must be an absolute path without `.` and `..`"
            yield f"{field}[0]", rule
    for index, argument in enumerate(command):
        if "\0" in argument:
            yield f"{field}[{index}]", "must have no NUL"


def _to_rules(violations: Violations) -> Iterator[BrokenRule]:
    for found in violations:
        rule = f"{found.rule}: {found.message}" if found.message else found.rule
        yield found.field.removeprefix("."), rule
