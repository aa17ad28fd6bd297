"""The publisher as a process: to a folder, or to a cluster.

Without a cluster decisions become manifests in a folder; with one they become what the
API server holds. Everything else is the same bus.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from publisher.classic.wiring import open_classic
from publisher.cluster.wiring import open_cluster
from publisher.config import PublisherConfig
from publisher.folder.wiring import folder_tasks, open_folder
from runtime.bus.bus import Bus
from runtime.bus.relaying import relaying
from runtime.run import Task
from runtime.wire import BusSettings


@asynccontextmanager
async def open_service(config: PublisherConfig) -> AsyncIterator[dict[str, Task]]:
    """Open the sink and the bus; close them in reverse.

    Raises:
        ConfigError: the folder or the kubeconfig cannot be used.
        ClusterError: the cluster serves nothing of resource.k8s.io that we know.
        ApiError: the API server does not answer.
        BusError: the streams are not as they should be.
    """
    settings = BusSettings.of(config, "publisher")
    if config.folder:
        with open_folder(config) as (folder, contents):
            async with relaying(settings), Bus.open(settings) as bus:
                await bus.wait_connected()
                await bus.ensure_streams()
                yield folder_tasks(config, bus, folder, contents, utc_now)
        return
    opens = open_classic if config.classic_controllers else open_cluster
    async with relaying(settings), opens(config, settings, utc_now) as tasks:
        yield tasks


def utc_now() -> str:
    """Return the time as Kubernetes keeps it: whole seconds, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
