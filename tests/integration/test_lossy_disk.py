"""What a server loses with power: what it did not sync, and nothing else.

Shows that `tests/lab/lossy_disk.py` takes what `test_nats_cluster_kills.py` relies on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.bus.bus import Bus
from runtime.wire import BusSettings, Outgoing
from tests.lab.lossy_disk import LossyDisk, why_not
from tests.lab.nats_server import LabServer

MESSAGES = 20

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the disk is mounted."""
    return tmp_path / "disk"


@pytest.fixture
def disk(folder: Path) -> Iterator[LossyDisk]:
    """A disk of the test's own."""
    disk = LossyDisk(folder)
    with disk.mounted():
        yield disk


@pytest.mark.parametrize("seed", range(8))
def test_only_what_was_not_synced_is_lost(
    disk: LossyDisk, folder: Path, seed: int
) -> None:
    synced = b"a" * 10_000
    with (folder / "file").open("wb", buffering=0) as file:
        file.write(synced)
        os.fsync(file.fileno())
        file.write(b"b" * 10_000)
        file.seek(4096)
        file.write(b"c" * 4096)
    (folder / "new").write_bytes(b"d")

    lost = disk.lose(seed)

    assert lost.pages or lost.bytes
    data = (folder / "file").read_bytes()
    assert data[:4096] == synced[:4096]
    assert data[4096:8192] in {b"a" * 4096, b"c" * 4096}
    assert data[8192:10_000] == synced[8192:]
    assert not data[10_000:].replace(b"b", b"")
    assert (folder / "new").read_bytes() in {b"", b"d"}
    assert disk.lose(seed).files == 0


def test_what_is_opened_to_sync_each_write_is_kept(
    disk: LossyDisk, folder: Path
) -> None:
    descriptor = os.open(folder / "file", os.O_CREAT | os.O_WRONLY | os.O_SYNC)
    os.write(descriptor, b"x")
    os.close(descriptor)

    assert disk.lose(0).files == 0
    assert (folder / "file").read_bytes() == b"x"


@pytest.mark.parametrize(("sync", "kept"), [("always", True), ("2m", False)])
async def test_a_server_keeps_what_it_acknowledged_only_if_it_syncs_always(
    disk: LossyDisk, folder: Path, sync: str, *, kept: bool
) -> None:
    """As k8s/base says; nats-server's own setting is two minutes."""
    server = LabServer(folder / "nats", sync=sync)
    settings = BusSettings(name="test", servers=(server.url,))
    try:
        server.start()
        async with Bus.open(settings) as bus:
            await bus.wait_connected(10)
            await bus.ensure_streams()
            _sync(folder)
            for number in range(MESSAGES):
                await bus.publish(Outgoing(subject=f"cmd.v1.c.n.{number}", data=b"x"))
            server.kill()
            for seed in range(4):
                disk.lose(seed)
            server.start()
            await bus.wait_connected(10)
            found = [await bus.last("CMD", f"cmd.v1.c.n.{n}") for n in range(MESSAGES)]
    finally:
        server.stop()
    assert all(found) == kept


def _sync(folder: Path) -> None:
    """Sync every file, as time does sooner or later."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
