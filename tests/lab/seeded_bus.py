"""A bus with a message on a subject of each row."""

from __future__ import annotations

from contracts.topics import BLOBS, TOPICS, SubjectFamily
from runtime.bus.bus import Bus
from tests.lab.secured_nats import SecuredNats

FAMILIES: tuple[SubjectFamily, ...] = (*TOPICS, BLOBS)
SEED = "seed"
ANSWER_S = 20.0


async def seed(nats: SecuredNats) -> None:
    """Make the streams, and put a message on a subject of each row."""
    async with Bus.open(nats.settings("publisher")) as bus:
        await bus.wait_connected(ANSWER_S)
        await bus.ensure_streams()
    for family in FAMILIES:
        async with nats.client(family.senders[0]) as client:
            await client.request(on_row(family, SEED), b"kept", timeout=ANSWER_S)


def on_row(family: SubjectFamily, name: str) -> str:
    """Give a subject of a row, each of its names this one."""
    return family.any_subject.replace("*", name)
