"""Builds what kubelet needs of this agent: one plugin for each driver of its source."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from contracts.ids import DeviceID, DriverName, NodeName
from contracts.names import AGENT_MANAGER
from nodeagent.agent_state import AgentState
from nodeagent.errors import SourceError
from nodeagent.health import Moment
from nodeagent.kubelet.cdi_restorer import CdiRestorer
from nodeagent.kubelet.claims import ClaimReader, ForgottenClaims
from nodeagent.kubelet.drift_teller import DriftTeller
from nodeagent.kubelet.dropped import list_dropped
from nodeagent.kubelet.liveness import serve_liveness
from nodeagent.kubelet.metadata_files import MetadataFiles
from nodeagent.kubelet.plugin import DeviceVerdict, Plugin
from nodeagent.kubelet.pod_resources import PodResources
from nodeagent.kubelet.preparer import Preparer
from nodeagent.kubelet.server import SocketError, serve_plugin
from nodeagent.kubelet.sockets import SocketPaths, find_paths
from nodeagent.kubelet.status_writer import PreparedStatusWriter
from nodeagent.prepare.cdi_files import CdiFiles
from nodeagent.prepare.checkpoint import Checkpoint
from nodeagent.sources.source import DeviceSource
from runtime.errors import ConfigError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ClusterError
from runtime.run import Task


class KubeletSettings(Struct, frozen=True, kw_only=True):
    """Where kubelet and the container runtime look."""

    folder: Path
    """kubelet's own, `/var/lib/kubelet`."""
    cdi_folder: Path
    kubeconfig: str = ""
    """Empty: the service account of the pod that we run in."""
    instance: str = ""
    """The uid of our pod; empty: never two at once."""
    liveness_address: str = ""
    tells_metadata: bool = False
    """True: containers get files about their devices (KEP-5304)."""
    drift_lasts_s: float = 20.0
    """A difference between what runs and what was decided that is over sooner is none.
    """


class KubeletSide(Struct):
    """The kubelet side of an agent, as the rest of it uses it."""

    preparers: tuple[Preparer, ...]
    """One for each driver; `checkpoint.claims` of each is what is prepared."""
    tasks: dict[str, Task]


@contextlib.asynccontextmanager
async def open_kubelet_side(
    settings: KubeletSettings,
    source: DeviceSource,
    state: AgentState,
    clock: Callable[[], Moment],
) -> AsyncIterator[KubeletSide]:
    """Serve kubelet while the block runs; `state` is told what drifts.

    Raises:
        ConfigError: a folder, a socket or the API server cannot be had so.
    """
    node = source.nodes[0]
    verdicts = DeviceVerdicts(node, source, state)
    await verdicts.discover()
    async with contextlib.AsyncExitStack() as stack:
        try:
            api = await stack.enter_async_context(
                KubernetesApi.open(settings.kubeconfig, manager=AGENT_MANAGER)
            )
        except ClusterError as error:
            raise ConfigError("NODEAGENT_KUBECONFIG", str(error)) from error
        reader = ClaimReader(api)
        preparers: list[Preparer] = []
        paths_by_driver: dict[DriverName, SocketPaths] = {}
        status = PreparedStatusWriter(reader, source, preparers)
        for driver in source.drivers:
            preparer = _open_preparer(settings, driver, source, reader, status)
            paths = find_paths(settings.folder, driver, settings.instance)
            plugin = Plugin(preparer, str(paths.plugin), verdicts.list_of)
            try:
                await stack.enter_async_context(serve_plugin(plugin, paths))
            except SocketError as error:
                raise ConfigError("NODEAGENT_KUBELET_FOLDER", str(error)) from error
            preparers.append(preparer)
            paths_by_driver[driver] = paths
        variable = "NODEAGENT_LIVENESS_ADDRESS"
        await stack.enter_async_context(
            serve_liveness(settings.liveness_address, paths_by_driver, variable)
        )
        sweeper = ForgottenClaims(tuple(preparers), reader, node)
        # Lets go of claims that kubelet forgot; kubelet's calls need no task of ours.
        pod_resources = await stack.enter_async_context(
            PodResources.open(settings.folder)
        )
        drifts = DriftTeller(
            pod_resources,
            reader,
            preparers,
            lasts_s=settings.drift_lasts_s,
            clock=clock,
            list_dropped=lambda ours: tuple(
                list_dropped(settings.folder / "plugins", ours)
            ),
            tell=partial(state.note_drift, node),
        )
        tasks: dict[str, Task] = {
            "sweep-claims": sweeper.run,
            # Writes what containers of earlier claims need to start again.
            "restore-cdi": CdiRestorer(preparers).run,
            # Compares what containers hold with claims and records.
            "tell-drift": drifts.run,
            # Writes into claims what is known of their devices.
            "write-device-status": status.run,
        }
        yield KubeletSide(tuple(preparers), tasks)


def _open_preparer(
    settings: KubeletSettings,
    driver: DriverName,
    source: DeviceSource,
    reader: ClaimReader,
    status: PreparedStatusWriter,
) -> Preparer:
    cdi = CdiFiles(settings.cdi_folder, driver)
    folder = settings.folder / "plugins" / driver / "claims"
    checkpoint = Checkpoint(folder, driver, cdi)
    node = source.nodes[0]
    metadata = MetadataFiles(
        folder.with_name("metadata"),
        node,
        source,
        are_wanted=settings.tells_metadata,
    )
    preparer = Preparer(
        driver,
        node,
        source,
        reader.read,
        checkpoint=checkpoint,
        cdi=cdi,
        metadata=metadata,
        on_prepared=status.note,
    )
    try:
        preparer.open()
    except OSError as error:
        raise ConfigError("NODEAGENT_KUBELET_FOLDER", str(error)) from error
    return preparer


class DeviceVerdicts:
    """The health of the devices of one node, by driver."""

    def __init__(self, node: NodeName, source: DeviceSource, state: AgentState) -> None:
        self._node = node
        self._source = source
        self._state = state

    async def discover(self) -> None:
        """List the devices while the bus is away and the announcer has not."""
        devices: tuple[DeviceID, ...] = ()
        with contextlib.suppress(SourceError):
            devices = (await self._source.discover(self._node)).device_ids
        self._state.follow_verdicts(self._node, devices)

    def list_of(self, driver: DriverName) -> tuple[DeviceVerdict, ...]:
        """Return what holds now of each device of a driver."""
        return tuple(
            DeviceVerdict(device, *self._state.find_verdict(self._node, device))
            for device in self._state.list_devices(self._node)
            if device.driver == driver
        )
