"""An agent that is killed between any two system calls leaves nothing wrong."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.errors import PrepareError
from nodeagent.prepare.cdi_files import CdiFiles
from tests.builders.prepared import (
    DRIVER,
    Bench,
    allocated,
    asked,
    make_preparer,
    result,
)
from tests.lab.killed_preparer import CLAIM, main
from tests.lab.soak import sized

MOST_CALLS = 60
ROUNDS = sized(10, 300)
OTHER = asked("b")
CLAIMS = {
    "a": allocated(CLAIM, result("gpu-0"), result("gpu-1")),
    "b": allocated(OTHER, result("gpu-1")),
}


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.lab.killed_preparer"])


def act(folder: Path, action: str, calls: int) -> int | None:
    """Run an action in a process that is killed at a call; gives its exit code."""
    process = PROCESSES.Process(target=main, args=(folder, action, calls))
    process.start()
    process.join()
    return process.exitcode


def kills(folder: Path, action: str) -> Iterator[int]:
    """Kill an action at its first call, at its second, and so on; gives where."""
    for calls in range(1, MOST_CALLS):
        code = act(folder, action, calls)
        yield calls
        if code == 0:
            return
        assert code == -signal.SIGKILL
    raise AssertionError(f"{action} makes over {MOST_CALLS} calls")


def look(folder: Path) -> None:
    """What kubelet does next goes right, with a new agent on what was left."""
    asyncio.run(use(folder))
    assert {path.name for path in folder.rglob("*.json")} == set()


async def use(folder: Path) -> None:
    """Prepare and unprepare, once more and for another claim."""
    preparer = make_preparer(
        folder, Bench("gpu-0", "gpu-1"), CLAIMS, tells_metadata=True
    )
    first = await preparer.prepare(CLAIM)
    assert await preparer.prepare(CLAIM) == first
    with pytest.raises(PrepareError, match="is prepared for"):
        await preparer.prepare(OTHER)
    assert CdiFiles(folder / "cdi", DRIVER).list_claims() == (CLAIM.uid,)
    await preparer.unprepare(CLAIM)
    await preparer.prepare(OTHER)
    await preparer.unprepare(OTHER)


def test_an_agent_may_be_killed_at_any_call_while_it_prepares(tmp_path: Path) -> None:
    """Each call on files in turn: opened, half written, synced, named."""
    rounds = 0
    for rounds in kills(tmp_path, "prepare"):  # noqa: B007 # counted
        look(tmp_path)
    assert rounds > 10


def test_an_agent_may_be_killed_at_any_call_while_it_unprepares(tmp_path: Path) -> None:
    """Whether kubelet then unprepares it again, or prepares it for another pod."""
    rounds = 0
    kept = tmp_path / "kept"
    preparer = make_preparer(kept, Bench("gpu-0", "gpu-1"), CLAIMS, tells_metadata=True)
    asyncio.run(preparer.prepare(CLAIM))
    for rounds in kills(tmp_path / "tried", "unprepare"):  # noqa: B007 # counted
        look(tmp_path / "tried")
        shutil.rmtree(tmp_path / "tried")
        shutil.copytree(kept, tmp_path / "tried")
    assert rounds > 3


def test_kills_one_after_the_other_add_up_to_nothing(tmp_path: Path) -> None:
    """Some hundred rounds with MOORINGS_SOAK=1; the seed is the same each time."""
    drawn = random.Random(7)
    for _ in range(ROUNDS):
        for _ in range(drawn.randint(1, 3)):
            act(tmp_path, drawn.choice(("prepare", "unprepare")), drawn.randint(1, 15))
        look(tmp_path)
