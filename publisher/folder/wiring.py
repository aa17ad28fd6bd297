"""The publisher without a cluster: decisions and inventories in, manifests out.

Reads the folder before anything is followed, so a restart completes what is missing
and repeats nothing. One publisher a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from publisher.config import PublisherConfig
from publisher.errors import FolderError
from publisher.folder.claim_writer import ClaimWriter
from publisher.folder.files import Contents, Folder
from publisher.folder.known_claims import KnownClaims
from publisher.folder.slice_sink import FolderSliceSink
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcements import Announcements
from publisher.slices.reconciler import SliceReconciler
from runtime.bus.bus import Bus
from runtime.errors import ConfigError
from runtime.log import get_logger
from runtime.run import Task

log = get_logger(__name__)


@contextmanager
def open_folder(config: PublisherConfig) -> Iterator[tuple[Folder, Contents]]:
    """Hold the folder and what it contains.

    Raises:
        ConfigError: it cannot be used, or another publisher uses it.
    """
    folder = Folder(Path(config.folder))
    with ExitStack() as stack:
        try:
            contents = stack.enter_context(folder.opened())
        except FolderError as error:
            raise ConfigError("PUBLISHER_FOLDER", str(error)) from error
        _report(config.folder, contents)
        yield folder, contents


def folder_tasks(
    config: PublisherConfig,
    bus: Bus,
    folder: Folder,
    contents: Contents,
    now: Callable[[], str],
) -> dict[str, Task]:
    """Name what runs for as long as the service does."""
    known = KnownClaims(contents.objects)
    tasks = ClaimWriter(config, bus, folder, known, now).tasks()
    if config.publish_slices:
        owned = frozenset(config.owned_drivers)
        announced = AnnouncedPools(lambda driver, _: driver in owned)
        announcements = Announcements(config.cluster, bus, announced)
        sink = FolderSliceSink(folder, contents.objects)
        writer = SliceReconciler(sink, announcements, now)
        tasks |= announcements.tasks() | {"slices": writer.publish}
    return tasks


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
