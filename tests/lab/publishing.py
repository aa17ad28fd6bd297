"""A publisher inside the test's own event loop, and what it writes into a folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from contracts.ids import ClusterName
from publisher.config import PublisherConfig
from publisher.service import open_service
from runtime.run import serve
from tests.builders.decisions import CLUSTER
from tests.lab.nats_server import LabServer


@asynccontextmanager
async def publisher(
    server: LabServer,
    folder: Path,
    cluster: ClusterName = CLUSTER,
    **fields: Any,
) -> AsyncIterator[None]:
    """Run a publisher while the block runs; it must stop as asked."""
    config = PublisherConfig(
        cluster=cluster, servers=(server.url,), folder=str(folder), **fields
    )
    stop = asyncio.Event()
    running = asyncio.create_task(
        serve("publisher", lambda: open_service(config), stop)
    )
    try:
        yield
    finally:
        stop.set()
        assert await running == 0


def manifests(folder: Path, kind: str = "resourceclaims") -> dict[str, Any]:
    """Read all manifests by file name."""
    return {
        path.name: json.loads(path.read_bytes())
        for path in sorted((folder / kind).rglob("*.json"))
    }
