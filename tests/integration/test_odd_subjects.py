"""What no client of ours would send keeps nobody from what comes behind it.

Sent by hand: the client library refuses to. Each message is stored, so a service meets
it again at every start.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contracts.messages import GangAllocated
from runtime.bus.bus import Bus
from tests.lab.nats_server import LabServer
from tests.lab.services import eventually, running, solver, submit
from tests.lab.two_nodes import is_decided, two_nodes, wanted

WITHIN_S = 60.0
LINES = b"a: b\r\n" * 10_000
SUBJECTS = (
    b"submit.v1.local.evil.\xff",
    b"submit.v1.local.evil.a\x0cb",
    b"cmd.v1.local.evil.\xfe",
    b"health.v1.local.\xff",
    b"inv.v1.local.\x0c",
)


async def send(server: LabServer, *messages: bytes) -> None:
    """Speak NATS as it is written."""
    host, _, port = server.url.removeprefix("nats://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    hello = b'CONNECT {"verbose":false,"headers":true,"lang":"x","version":"1"}\r\n'
    writer.write(hello + b"".join(messages) + b"PING\r\n")
    await writer.drain()
    while (line := await reader.readline()) != b"PONG\r\n":
        assert line
    writer.close()


def headed(subject: bytes, headers: bytes, body: bytes) -> bytes:
    """Write a message with headers."""
    block = b"NATS/1.0\r\n" + headers + b"\r\n"
    sizes = b"%d %d" % (len(block), len(block) + len(body))
    return b"HPUB %b %b\r\n%b%b\r\n" % (subject, sizes, block, body)


@pytest.mark.parametrize("is_first", [True, False])
async def test_decisions_go_on_behind_odd_subjects_and_headers(
    bus: Bus, nats_server: LabServer, tmp_path: Path, *, is_first: bool
) -> None:
    """Those that are stored when the solver starts, and those that come later."""
    odd = [b"PUB %b 2\r\n{}\r\n" % subject for subject in SUBJECTS]
    odd += [headed(b"submit.v1.local.evil.%d" % n, LINES, b"{}") for n in range(20)]
    odd.append(headed(b"cmd.v1.local.evil.x", b"\xff: \xff\r\n", b"{}"))
    await two_nodes(bus)
    if is_first:
        await send(nats_server, *odd)
    async with running(solver(nats_server.url, tmp_path)):
        gang = wanted(1, 2, 2)
        if not is_first:
            await send(nats_server, *odd)
        await submit(bus, gang)
        await eventually(
            lambda: is_decided(bus, gang, GangAllocated), "decided", WITHIN_S
        )
