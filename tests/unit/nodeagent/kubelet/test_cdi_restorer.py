"""Containers of prepared claims start again after the agent did, and on their card."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from nodeagent.errors import CardChangedError
from nodeagent.kubelet.cdi_restorer import CdiRestorer
from nodeagent.kubelet.preparer import Preparer
from tests.builders.prepared import (
    Bench,
    allocated,
    asked,
    config,
    make_preparer,
    parameters,
    result,
)
from tests.lab.services import eventually

A, B = asked("a"), asked("b")
CONFIGS = (config(parameters(env={"MODE": "x"})),)
CLAIMS = {
    "a": allocated(A, result("gpu-0"), configs=CONFIGS),
    "b": allocated(B, result("gpu-1")),
}


@contextlib.asynccontextmanager
async def restoring(preparer: Preparer) -> AsyncIterator[CdiRestorer]:
    """Run it meanwhile."""
    restorer, stop = CdiRestorer((preparer,)), asyncio.Event()
    running = asyncio.create_task(restorer.run(stop))
    yield restorer
    stop.set()
    await running


async def restore(preparer: Preparer) -> None:
    """Run it until nothing is left to do."""
    async with restoring(preparer) as restorer:
        await eventually_true(lambda: not restorer._due)


async def eventually_true(holds: Callable[[], bool]) -> None:
    async def asked() -> bool:
        return holds()

    await eventually(asked, "it to hold", 20.0)


def file_of(folder: Path, uid: str) -> Path:
    return folder / "cdi" / f"gpu.example.com-claim_{uid}.json"


@pytest.mark.parametrize("tells_metadata", [False, True])
@pytest.mark.parametrize("found", [None, b"", b'{"cdiVersion": "0.6.0"}'])
async def test_a_file_that_is_missing_or_outdated_is_written_from_the_record(
    tmp_path: Path, found: bytes | None, *, tells_metadata: bool
) -> None:
    """With all that the container had, its parameters included."""
    source = Bench("gpu-0", "gpu-1")
    before = make_preparer(tmp_path, source, CLAIMS, tells_metadata=tells_metadata)
    await before.prepare(A)
    file = file_of(tmp_path, A.uid)
    written = file.read_bytes()
    assert b"MODE=x" in written
    file.unlink()
    if found is not None:
        file.write_bytes(found)
    after = make_preparer(tmp_path, source, CLAIMS, tells_metadata=tells_metadata)
    await restore(after)
    assert file.read_bytes() == written


async def test_one_claim_that_cannot_be_restored_yet_is_in_no_others_way(
    tmp_path: Path,
) -> None:
    """Its device may come a moment later; what is unprepared meanwhile needs none."""
    source = Bench("gpu-0", "gpu-1")
    preparer = make_preparer(tmp_path, source, CLAIMS)
    for claim in (A, B):
        await preparer.prepare(claim)
        file_of(tmp_path, claim.uid).unlink()
    source.devices.discard("gpu-0")
    preparer = make_preparer(tmp_path, source, CLAIMS)
    async with restoring(preparer):
        await eventually_true(file_of(tmp_path, B.uid).exists)
        assert not file_of(tmp_path, A.uid).exists()
        source.devices.add("gpu-0")
        await eventually_true(file_of(tmp_path, A.uid).exists)
    await preparer.unprepare(A)
    await preparer.restore_cdi(A.uid)
    assert not file_of(tmp_path, A.uid).exists()


async def test_no_container_starts_on_another_card(tmp_path: Path) -> None:
    source = Bench("gpu-0", "gpu-1")
    source.cards = {"gpu-0": "GPU-aaa"}
    await make_preparer(tmp_path, source, CLAIMS).prepare(A)
    source.cards = {"gpu-0": "GPU-bbb"}
    preparer = make_preparer(tmp_path, source, CLAIMS)
    await restore(preparer)
    assert not file_of(tmp_path, A.uid).exists()
    with pytest.raises(CardChangedError, match="was GPU-aaa"):
        await preparer.restore_cdi(A.uid)
    record = json.loads((tmp_path / "claims" / f"{A.uid}.json").read_bytes())
    assert record["content"]["devices"][0]["card"] == "GPU-aaa"
