"""What is said to be written of devices was written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from structlog.testing import capture_logs

from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.status_writer import PreparedStatusWriter
from runtime.kube.kinds import Kind
from tests.builders.prepared import Bench, allocated, asked, make_preparer, result

CLAIMS = [asked("a"), asked("b"), asked("c")]


class ApiServer:
    """Keeps what is written, or drops it as one whose gate is off."""

    api: ApiServer

    def __init__(self, *, keeps: bool) -> None:
        self.api = self
        self.applied = 0
        self._keeps = keeps

    async def find_kind(self) -> Kind:
        """Serve claims."""
        return cast("Kind", type("Served", (), {"api_version": "v1", "name": "C"}))

    async def apply(self, _kind: Kind, _key: str, body: Any, **_: str) -> Any:
        """Answer with what is stored."""
        self.applied += 1
        return body if self._keeps else {"metadata": body["metadata"], "status": {}}


async def write(folder: Path, *, keeps: bool) -> list[str]:
    """Write of three claims; gives what was logged of it."""
    claims = {ref.name: allocated(ref, result(f"gpu-{ref.name}")) for ref in CLAIMS}
    source = Bench(*(f"gpu-{ref.name}" for ref in CLAIMS))
    preparer = make_preparer(folder, source, claims)
    server, stop = ApiServer(keeps=keeps), asyncio.Event()
    writer = PreparedStatusWriter(cast("ClaimReader", server), source, [preparer])
    for ref in CLAIMS:
        await preparer.prepare(ref)
    with capture_logs() as logs:
        running = asyncio.create_task(writer.run(stop))
        async with asyncio.timeout(20):
            while server.applied < len(CLAIMS):  # noqa: ASYNC110 # ours to ask
                await asyncio.sleep(0.01)
        stop.set()
        await running
    return [log["event"] for log in logs if log["event"].startswith("device_status")]


async def test_what_is_written_is_logged_of_each_claim(tmp_path: Path) -> None:
    assert await write(tmp_path, keeps=True) == ["device_status.written"] * len(CLAIMS)


async def test_what_a_gate_drops_is_not_said_to_be_written(tmp_path: Path) -> None:
    """Once, as it holds of all claims."""
    assert await write(tmp_path, keeps=False) == ["device_status.dropped"]
