"""Records of drivers that nobody serves any more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from contracts.ids import DriverName
from nodeagent.kubelet.dropped import list_dropped
from tests.builders.prepared import (
    DRIVER,
    Bench,
    allocated,
    asked,
    make_preparer,
    result,
)

A = asked("a")


async def make_record(plugins: Path) -> None:
    """Prepare a claim as the agent does, and leave what is no record of ours."""
    preparer = make_preparer(
        plugins / DRIVER, Bench("gpu-0"), {"a": allocated(A, result("gpu-0"))}
    )
    await preparer.prepare(A)
    (plugins / DRIVER / "claims" / "torn.json").write_bytes(b"{")
    other = plugins / "other.example.com" / "claims"
    other.mkdir(parents=True)
    record = plugins / DRIVER / "claims" / f"{A.uid}.json"
    (other / record.name).write_bytes(record.read_bytes())


async def test_records_of_a_driver_that_no_source_is_of_are_listed(
    tmp_path: Path,
) -> None:
    await make_record(tmp_path)
    assert list(list_dropped(tmp_path, [DRIVER])) == []
    (dropped,) = list_dropped(tmp_path, [DriverName("other.example.com")])
    assert (dropped.claim, dropped.driver) == (A, DRIVER)
    assert list(list_dropped(tmp_path / "none", [])) == []


async def test_a_driver_that_another_agent_serves_is_not_dropped() -> None:
    with TemporaryDirectory(dir="/tmp") as scratch:
        plugins = Path(scratch)
        await make_record(plugins)
        socket = plugins / DRIVER / "dra.sock"
        server = await asyncio.start_unix_server(lambda *_: None, socket)
        assert list(list_dropped(plugins, [])) == []
        server.close()
        await server.wait_closed()
        assert len(list(list_dropped(plugins, []))) == 1
