"""What is said to be written of devices was written, and is followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, DeviceID
from nodeagent.errors import SourceError
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.status_writer import PreparedStatusWriter
from nodeagent.sources.source import DeviceCondition, DeviceDescription
from runtime.kube.errors import InvalidError
from runtime.kube.kinds import Kind
from tests.builders.prepared import Bench, allocated, asked, make_preparer, result

CLAIMS = [asked("a"), asked("b"), asked("c")]
FOLLOW_S = 0.02


class ApiServer:
    """Keeps what is written, or drops it as one whose gate is off."""

    api: ApiServer

    def __init__(self, *, keeps: bool = True) -> None:
        self.api = self
        self.written: list[Any] = []
        """`status.devices` of each write."""
        self.claims: dict[str, ResourceClaim] = {}
        self.refuses = False
        self._keeps = keeps

    async def find_kind(self) -> Kind:
        """Serve claims."""
        return cast("Kind", type("Served", (), {"api_version": "v1", "name": "C"}))

    async def read(self, asked: ClaimRef) -> ResourceClaim:
        """Answer with a claim."""
        return self.claims[asked.name]

    async def apply(self, _kind: Kind, _key: str, body: Any, **_: str) -> Any:
        """Answer with what is stored."""
        self.written.append(body["status"]["devices"])
        if self.refuses:
            raise InvalidError("apply", "status.devices", "no")
        return body if self._keeps else {"metadata": body["metadata"], "status": {}}


class Devices(Bench):
    """Devices that are described as a test says."""

    said: DeviceDescription | None = DeviceDescription(data={"numaNode": 0})
    """None: they cannot be described."""

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Say it of all."""
        if self.said is None:
            raise SourceError("bench", f"no answer of {device}")
        return self.said


@asynccontextmanager
async def writing(
    folder: Path, server: ApiServer, source: Devices
) -> AsyncIterator[PreparedStatusWriter]:
    """Write of three prepared claims."""
    claims = {ref.name: allocated(ref, result(f"gpu-{ref.name}")) for ref in CLAIMS}
    server.claims = claims | server.claims
    preparer = make_preparer(folder, source, claims)
    stop = asyncio.Event()
    reader = cast("ClaimReader", server)
    writer = PreparedStatusWriter(reader, source, [preparer], follow_s=FOLLOW_S)
    for ref in CLAIMS:
        await preparer.prepare(ref)
    running = asyncio.create_task(writer.run(stop))
    try:
        yield writer
    finally:
        stop.set()
        await running


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 # ours to ask
            await asyncio.sleep(0.01)


def make_devices() -> Devices:
    return Devices(*(f"gpu-{ref.name}" for ref in CLAIMS))


async def write(folder: Path, *, keeps: bool) -> list[str]:
    """Write of three claims; gives what was logged of it."""
    server = ApiServer(keeps=keeps)
    with capture_logs() as logs:
        async with writing(folder, server, make_devices()):
            await until(lambda: len(server.written) == len(CLAIMS))
            await asyncio.sleep(5 * FOLLOW_S)
    assert len(server.written) == len(CLAIMS)
    return [log["event"] for log in logs if log["event"].startswith("device_status")]


async def test_what_is_written_is_logged_of_each_claim(tmp_path: Path) -> None:
    """And not written again while nothing changes."""
    assert await write(tmp_path, keeps=True) == ["device_status.written"] * len(CLAIMS)


async def test_what_a_gate_drops_is_not_said_to_be_written(tmp_path: Path) -> None:
    """Once, as it holds of all claims."""
    assert await write(tmp_path, keeps=False) == ["device_status.dropped"]


async def test_what_changes_is_written_and_what_is_unknown_stays(
    tmp_path: Path,
) -> None:
    """A pod's network comes after its claim was prepared, and links change."""
    server, source = ApiServer(), make_devices()
    with capture_logs() as logs:
        async with writing(tmp_path, server, source):
            await until(lambda: len(server.written) == len(CLAIMS))
            source.said = None
            await until(lambda: any(x["event"] == "device.undescribed" for x in logs))
            await asyncio.sleep(5 * FOLLOW_S)
            assert len(server.written) == len(CLAIMS)
            source.said = DeviceDescription(data={"numaNode": 1})
            await until(lambda: len(server.written) == 2 * len(CLAIMS))
    assert {entry["data"]["numaNode"] for (entry,) in server.written[-3:]} == {1}
    told = [x["device"] for x in logs if x["event"] == "device.undescribed"]
    assert len(told) == len(set(told)) == len(CLAIMS)


async def test_a_claim_that_is_prepared_anew_is_written_anew(tmp_path: Path) -> None:
    """Deallocation cleared its status."""
    server = ApiServer()
    async with writing(tmp_path, server, make_devices()) as writer:
        await until(lambda: len(server.written) == len(CLAIMS))
        writer.note(CLAIMS[0])
        await until(lambda: len(server.written) == len(CLAIMS) + 1)


@pytest.mark.parametrize("status", ["True", "False"])
async def test_a_condition_lasts_beyond_the_agent_that_wrote_it(
    tmp_path: Path, status: str
) -> None:
    server, source = ApiServer(), make_devices()
    long_ago = "2020-01-01T00:00:00Z"
    link = {"type": "LinkUp", "status": "True", "lastTransitionTime": long_ago}
    (device,) = (result("gpu-a"),)
    entry = {"driver": device.driver, "pool": device.pool, "device": device.device}
    claim = allocated(CLAIMS[0], device)
    assert claim.status is not None
    told = replace(claim.status, devices=({**entry, "conditions": [link]},))
    server.claims = {"a": replace(claim, status=told)}
    condition = DeviceCondition(type="LinkUp", status=status, reason="Carrier")
    source.said = DeviceDescription(conditions=(condition,))
    async with writing(tmp_path, server, source):
        await until(lambda: len(server.written) == len(CLAIMS))
    since = {
        entry["device"]: entry["conditions"][0]["lastTransitionTime"]
        for (entry,) in server.written
    }
    assert (since["gpu-a"] == long_ago) is (status == "True")
    assert since["gpu-b"] > long_ago


async def test_what_is_refused_is_not_asked_again(tmp_path: Path) -> None:
    server = ApiServer()
    server.refuses = True
    async with writing(tmp_path, server, make_devices()):
        await until(lambda: len(server.written) == len(CLAIMS))
        await asyncio.sleep(5 * FOLLOW_S)
    assert len(server.written) == len(CLAIMS)
