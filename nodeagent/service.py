"""The node agent as a process: devices in, announcements and heartbeats out."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from contracts.names import AGENT_MANAGER
from nodeagent.advertise.advertiser import Advertiser
from nodeagent.advertise.resources import read_resources
from nodeagent.agent_state import AgentState
from nodeagent.announcer import Announcer, AnnouncerSettings
from nodeagent.config import NodeAgentConfig
from nodeagent.errors import ExtendedResourceError, SettingsError
from nodeagent.fence import make_incarnation
from nodeagent.health import Moment
from nodeagent.sources.combined import CombinedSource
from nodeagent.sources.open_sources import open_sources
from nodeagent.sources.simulated import open_simulated
from nodeagent.sources.source import DeviceSource
from runtime.bus.bus import Bus
from runtime.errors import ConfigError
from runtime.kube.api import KubernetesApi
from runtime.run import ServiceTasks, Task
from runtime.wire import BusSettings


@asynccontextmanager
async def open_service(config: NodeAgentConfig) -> AsyncIterator[dict[str, Task]]:
    """Open the source and the bus; close them in reverse.

    Raises:
        ConfigError: the variables, or a file that they name, cannot be used.
        BusError: the streams are not as they should be.
    """
    config.check()
    settings = BusSettings.of(config, f"nodeagent-{config.node or 'fleet'}")
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(_open_source(config))
        state = AgentState(config.cluster, source.nodes, config.health_policy)
        bus = await stack.enter_async_context(Bus.open(settings))
        advertising = await stack.enter_async_context(_open_advertiser(config))
        kubelet_tasks = await stack.enter_async_context(
            _open_kubelet(config, source, state)
        )
        announcer = Announcer(
            bus,
            source,
            state,
            config.cluster,
            settings=AnnouncerSettings(
                read_s=config.read_s,
                heartbeat_s=config.heartbeat_s,
                repeat_s=config.repeat_s,
                verify_s=config.verify_s,
                create_streams=config.create_streams,
            ),
            incarnation=make_incarnation(time.time_ns(), str(uuid4())),
            clock=_now,
            recall=source.recall if isinstance(source, CombinedSource) else None,
        )
        tasks: dict[str, Task] = {
            # Reads the devices and judges them; never waits for the bus.
            "watch-devices": announcer.watch_devices,
            # Sends inventory and health of nodes that changed, and restores what was
            # sent before a restart.
            "publish-changes": announcer.publish_changes,
            # Apart from the changes, so that much to send makes no node look dead.
            "publish-heartbeats": announcer.publish_heartbeats,
            # Sends again what the bus has lost, as after a purge.
            "notice-losses": announcer.notice_losses,
            # Counts them by health, for /metrics.
            "count-devices": announcer.count_devices,
            # Keeps extended resources in the Node's status.
            **advertising,
            # Lets go of claims that kubelet forgot, and tells what drifted.
            **kubelet_tasks,
        }
        yield ServiceTasks(tasks, lambda: announcer.has_announced)


@asynccontextmanager
async def _open_advertiser(config: NodeAgentConfig) -> AsyncIterator[dict[str, Task]]:
    """Open the way to the API server, if extended resources are to be advertised."""
    if not config.advertise:
        yield {}
        return
    if not config.node:
        rule = "is needed, as NODEAGENT_ADVERTISE is for one Node"
        raise ConfigError("NODEAGENT_NODE", rule)
    try:
        resources = read_resources(config.advertise)
    except ExtendedResourceError as error:
        raise ConfigError("NODEAGENT_ADVERTISE", str(error)) from error
    async with KubernetesApi.open(config.kubeconfig, manager=AGENT_MANAGER) as api:
        advertiser = Advertiser(api, config.node, resources)
        yield {"advertise-resources": advertiser.advertise}


@asynccontextmanager
async def _open_kubelet(
    config: NodeAgentConfig, source: DeviceSource, state: AgentState
) -> AsyncIterator[dict[str, Task]]:
    """Serve kubelet, where there is one.

    Raises:
        ConfigError: it cannot be served so.
    """
    if not config.kubelet_folder:
        yield {}
        return
    if len(source.nodes) != 1:
        raise ConfigError("NODEAGENT_NODE", "must name the one node of this kubelet")
    # gRPC costs memory that an agent without a kubelet need not have.
    from nodeagent.kubelet.wiring import (  # noqa: PLC0415
        KubeletSettings,
        open_kubelet_side,
    )

    settings = KubeletSettings(
        folder=Path(config.kubelet_folder),
        cdi_folder=Path(config.cdi_folder),
        kubeconfig=config.kubeconfig,
        instance=config.instance,
        liveness_address=config.liveness_address,
        tells_metadata=config.device_metadata,
        drift_lasts_s=config.drift_lasts_s,
    )
    async with open_kubelet_side(settings, source, state, _now) as side:
        yield side.tasks


@asynccontextmanager
async def _open_source(config: NodeAgentConfig) -> AsyncIterator[DeviceSource]:
    """Open the one fleet, or all sources of a node."""
    variable = "NODEAGENT_SOURCES" if config.sources else "NODEAGENT_FLEET"
    async with AsyncExitStack() as resources:
        try:
            if config.sources:
                opened = open_sources(Path(config.sources), config.node)
                source: DeviceSource = await resources.enter_async_context(opened)
            else:
                faults_file = Path(config.faults_file) if config.faults_file else None
                node = config.node or None
                source = open_simulated(Path(config.fleet), faults_file, node)
        except SettingsError as error:
            raise ConfigError(variable, str(error)) from error
        yield source


def _now() -> Moment:
    wall = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Moment(time.monotonic(), wall)
