"""The publisher as a process: decisions and inventories in, manifests out.

Opens the folder and reads it before anything is followed, so a restart completes what
is missing and repeats nothing. One publisher a folder.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from contracts.process.bus import Bus
from contracts.process.errors import ConfigError
from contracts.process.log import get_logger
from contracts.process.run import Task
from contracts.process.wire import BusSettings
from publisher.announced import Announced
from publisher.announcements import Announcements
from publisher.config import PublisherConfig
from publisher.errors import FolderError
from publisher.folder.claim_writer import ClaimWriter
from publisher.folder.files import Contents, Folder
from publisher.folder.known_claims import KnownClaims
from publisher.folder.slice_sink import FolderSlices
from publisher.slice_writer import SliceWriter

log = get_logger(__name__)


@asynccontextmanager
async def open_service(config: PublisherConfig) -> AsyncIterator[dict[str, Task]]:
    """Open the folder and the bus; close them in reverse.

    Raises:
        ConfigError: the folder cannot be used, or another publisher uses it.
        BusError: the streams are not as they should be.
    """
    folder = Folder(Path(config.folder))
    settings = BusSettings(
        servers=config.servers, name="publisher", replicas=config.replicas
    )
    async with AsyncExitStack() as stack:
        try:
            contents = stack.enter_context(folder.opened())
        except FolderError as error:
            raise ConfigError("PUBLISHER_FOLDER", str(error)) from error
        _report(config.folder, contents)
        async with Bus.open(settings) as bus:
            await bus.wait_connected()
            await bus.ensure_streams()
            known = KnownClaims(contents.objects)
            tasks = ClaimWriter(config, bus, folder, known, utc_now).tasks()
            if config.publish_slices:
                owned = frozenset(config.owned_drivers)
                announced = Announced(lambda driver, _: driver in owned)
                announcements = Announcements(config.cluster, bus, announced)
                sink = FolderSlices(folder, contents.objects)
                writer = SliceWriter(sink, announcements, utc_now)
                tasks |= announcements.tasks() | {"slices": writer.publish}
            yield tasks


def utc_now() -> str:
    """Give the time as Kubernetes keeps it: whole seconds, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _report(folder: str, contents: Contents) -> None:
    for damaged in contents.damaged:
        log.error("file.damaged", path=damaged.path, reason=damaged.reason[:500])
    log.info(
        "folder.opened",
        folder=folder,
        objects=len(contents.objects),
        damaged=len(contents.damaged),
        leftovers=contents.leftovers,
    )
