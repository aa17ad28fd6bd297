"""A publisher inside the test's own event loop, and what it writes into a folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from contracts import topics
from contracts.ids import ClusterName, GangUID, Namespace
from contracts.messages import ConfirmationMessage
from publisher.config import PublisherConfig
from publisher.service import open_service
from runtime.bus.bus import Bus
from runtime.run import serve
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.lab.nats_server import LabServer

_WAIT_S = 60.0


@asynccontextmanager
async def publisher(
    server: LabServer, folder: Path, cluster: ClusterName = CLUSTER, **fields: Any
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


async def confirmed(
    bus: Bus, wanted: type[ConfirmationMessage] | ConfirmationMessage, uid: str = ""
) -> ConfirmationMessage:
    """Wait until the last confirmation about a gang is this one, or of this type."""
    subject = topics.CONFIRMATIONS.subject(
        CLUSTER, Namespace(builders.NAMESPACE), GangUID(uid or builders.UID)
    )
    async with asyncio.timeout(_WAIT_S):
        while True:
            received = await bus.last("CONF", subject)
            if received is not None:
                message = topics.CONFIRMATIONS.codec.decode(received.data)
                if message == wanted or type(message) is wanted:
                    return message
            await asyncio.sleep(0.01)


async def confirmations(bus: Bus) -> list[ConfirmationMessage]:
    """Read every confirmation that is stored."""
    stop = asyncio.Event()
    found: list[ConfirmationMessage] = []
    subject = topics.CONFIRMATIONS.subjects_below(CLUSTER)
    async for page in bus.follow("CONF", [subject], stop, start="all"):
        found += [
            topics.CONFIRMATIONS.codec.decode(item.data) for item in page.messages
        ]
        if page.synced:
            stop.set()
    return found
