"""Opens what a sources file lists: the one place that knows how each kind is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextlib import nullcontext as already_open
from pathlib import Path

from contracts.ids import NodeName, PoolID
from nodeagent.sources.attributes import make_attribute
from nodeagent.sources.combined import CombinedSource
from nodeagent.sources.command.settings import CommandSpec
from nodeagent.sources.command.source import CommandSource
from nodeagent.sources.counted import CountedSource, CountedSpec
from nodeagent.sources.fleet import SimulatedSpec
from nodeagent.sources.nvml.spec import NvmlSpec
from nodeagent.sources.part import Additions, SourcePart
from nodeagent.sources.settings import read_text
from nodeagent.sources.simulated import open_simulated
from nodeagent.sources.source import DeviceSource, PartitionHooks
from nodeagent.sources.source_file import AnySourceSpec, read_sources
from nodeagent.sources.source_spec import DevicePrograms, DeviceSourceSpec
from nodeagent.sources.sysfs.source import open_sysfs
from nodeagent.sources.sysfs.spec import SysfsSpec


@asynccontextmanager
async def open_sources(file: Path, node: NodeName) -> AsyncIterator[CombinedSource]:
    """Open all sources of a node; close them in reverse.

    Raises:
        SettingsError: the file, or one that it names, cannot be read or breaks a rule.
    """
    specs = read_sources(read_text(file), str(file), node)
    async with AsyncExitStack() as resources:
        parts = []
        for spec in specs:
            opened = _open_source(spec, node, file.parent)
            source = await resources.enter_async_context(opened)
            parts.append(_make_part(spec, source, node))
        combined = CombinedSource(node, tuple(parts))
        resources.push_async_callback(combined.close)
        yield combined


def _open_source(
    spec: AnySourceSpec, node: NodeName, folder: Path
) -> AbstractAsyncContextManager[DeviceSource]:
    match spec:
        case SysfsSpec():
            return open_sysfs(spec, node)
        case NvmlSpec():
            # Nodes without NVIDIA's GPUs need not keep it in memory.
            from nodeagent.sources.nvml.source import open_nvml  # noqa: PLC0415

            return open_nvml(spec, node, folder)
        case CommandSpec():
            return already_open(CommandSource(spec, node))
        case CountedSpec():
            return already_open(CountedSource(spec, node))
        case SimulatedSpec():
            faults_file = folder / spec.faults_file if spec.faults_file else None
            return already_open(open_simulated(folder / spec.fleet, faults_file, node))


def _make_hooks(programs: DevicePrograms) -> PartitionHooks | None:
    if not (programs.set_up or programs.tear_down):
        return None
    return PartitionHooks(
        set_up=programs.set_up,
        tear_down=programs.tear_down,
        limit_s=programs.limit_seconds,
    )


def _make_part(spec: AnySourceSpec, source: DeviceSource, node: NodeName) -> SourcePart:
    if not isinstance(spec, DeviceSourceSpec):
        return SourcePart(spec.name, source, node, read_s=spec.read_seconds)
    return SourcePart(
        spec.name,
        source,
        node,
        read_s=spec.read_seconds,
        pool=PoolID(spec.driver, spec.pool_of(node)),
        additions=Additions(
            attributes={key: make_attribute(v) for key, v in spec.attributes.items()},
            edits=spec.edits,
            hooks=_make_hooks(spec.programs),
        ),
        health_only=spec.health_only,
    )
