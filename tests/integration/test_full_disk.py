"""A stack whose disk is full says so, waits, and goes on by itself with room."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.lab import small_disk
from tests.lab.command_line import moorings, read_server, stack_up

WAIT_S = 120.0
ROOT = Path(__file__).parents[2]
GANG = (ROOT / "docs" / "quickstart" / "gang.yaml").read_text()

pytestmark = pytest.mark.skipif(bool(small_disk.why_not()), reason=small_disk.why_not())


async def test_a_stack_waits_for_room_and_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "disk"
    with (
        small_disk.small_disk(home, "96m") as disk,
        stack_up(home, "--no-console") as stack,
    ):
        await asyncio.to_thread(read_server, stack)
        assert await submit(home, "first") == ""
        disk.fill()
        waiting = asyncio.create_task(submit(home, "second"))
        said = await read_until(stack, "is full: nothing is stored until it has room")
        assert await read_health(home) == "disk full: "
        disk.make_room()
        said += await read_until(stack, "nats-server was started again")
        await waiting  # stored, or refused in words: it depends on when it was full
        assert await submit(home, "third") == ""
        assert said.count("was started again") == 1


async def read_until(stack: subprocess.Popen[str], words: str) -> str:
    """Read what the stack says up to a line with these words."""
    assert stack.stdout is not None
    said = ""
    async with asyncio.timeout(WAIT_S):
        while words not in said:
            line = await asyncio.to_thread(stack.stdout.readline)
            assert line, said
            said += line
    return said


async def submit(home: Path, name: str) -> str:
    """Submit a gang and wait until it is allocated; returns why not, or nothing."""
    found = await asyncio.to_thread(
        moorings,
        *("submit", "-f", "-", "--wait"),
        home=home,
        stdin=GANG.replace("my-gang", name).replace("count: 4", "count: 1"),
    )
    return found.stderr if found.returncode else ""


async def read_health(home: Path) -> str:
    """Read how what the doctor says of the server's health begins."""
    found = await asyncio.to_thread(moorings, "doctor", "-o", "json", home=home)
    checks = json.loads(found.stdout)["checks"]
    why = next(each["why"] for each in checks if each["check"] == "nats.health")
    return str(why)[: len("disk full: ")]
