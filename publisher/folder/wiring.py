"""The publisher without a cluster: decisions and inventories in, manifests out.

Reads the folder before anything is followed, so a restart completes what is missing
and repeats nothing. One publisher a folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from contracts.messages import MAX_REASON
from publisher.config import PublisherConfig
from publisher.errors import FolderError
from publisher.folder.claim_writer import ClaimWriter
from publisher.folder.files import Contents, Folder
from publisher.folder.known_claims import KnownClaims
from publisher.folder.slice_sink import FolderSliceSink
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.reconciler import SliceReconciler
from runtime.bus.bus import Bus
from runtime.errors import ConfigError
from runtime.log import get_logger
from runtime.run import ServiceTasks, Task

log = get_logger(__name__)


@contextmanager
def open_folder(config: PublisherConfig) -> Iterator[tuple[Folder, Contents]]:
    """Open the folder, for this process alone.

    Raises:
        ConfigError: it cannot be used, or another publisher uses it.
    """
    folder = Folder(Path(config.folder))
    with ExitStack() as stack:
        try:
            contents = stack.enter_context(folder.open())
        except FolderError as error:
            raise ConfigError("PUBLISHER_FOLDER", str(error)) from error
        _log_contents(config.folder, contents)
        yield folder, contents


def folder_tasks(
    config: PublisherConfig,
    bus: Bus,
    folder: Folder,
    contents: Contents,
    now: Callable[[], str],
) -> ServiceTasks:
    """Name every task of the service."""
    claims = ClaimWriter(config, bus, folder, KnownClaims(contents.objects), now)
    tasks: dict[str, Task] = {
        # Reads decisions, once it is known what was confirmed before.
        "decisions": claims.follow,
        # So many gangs are written side by side.
        **{f"claims-{index}": claims.work for index in range(config.workers)},
    }
    if not config.publish_slices:
        return ServiceTasks(tasks, lambda: claims.has_read)
    owned = frozenset(config.owned_drivers)
    budget = EvictionBudget(config.evictions_percent)
    announced = AnnouncedPools(lambda driver, _: driver in owned, budget)
    sink = FolderSliceSink(folder, contents.objects)
    slices = SliceReconciler(sink, announced, now)
    limits = AnnouncementLimits.of(config)
    announcements = Announcements(config.cluster, bus, announced, limits, slices.hear)

    async def publish_slices(stop: asyncio.Event) -> None:
        await announcements.wait_synced(stop)
        await slices.publish(stop)

    tasks |= {
        # What node agents say of their devices and of their health.
        **announcements.tasks(),
        # ResourceSlices of the pools that they announce.
        "slices": publish_slices,
    }
    return ServiceTasks(tasks, lambda: claims.has_read and announcements.is_synced)


def _log_contents(folder: str, contents: Contents) -> None:
    for damaged in contents.damaged:
        log.error("file.damaged", path=damaged.path, reason=damaged.reason[:MAX_REASON])
    log.info(
        "folder.opened",
        folder=folder,
        objects=len(contents.objects),
        damaged=len(contents.damaged),
        leftovers=contents.leftovers,
    )
