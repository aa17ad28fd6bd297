"""A bus with a message on a subject of each row, and consumers made by hand."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.errors import NoRespondersError

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


async def make_consumer(
    client: Client,
    api: str,
    stream: str,
    name: str,
    /,
    *,
    action: str = "",
    filter_subject: str = ">",
    **config: Any,
) -> None:
    """Ask for a consumer of this name, or to change it; an answer is enough."""
    body = consumer_request(
        stream, name, action=action, filter_subject=filter_subject, **config
    )
    with suppress(NoRespondersError):
        await client.request(
            f"{api}.CONSUMER.CREATE.{stream}.{name}.{filter_subject}",
            body,
            timeout=ANSWER_S,
        )


def consumer_request(
    stream: str, name: str, /, *, action: str = "", **config: Any
) -> bytes:
    """Write the body of a request for a consumer of this name, or to change it."""
    body = {
        "stream_name": stream,
        "action": action,
        "config": {"name": name, "ack_policy": "none", "mem_storage": True, **config},
    }
    return json.dumps(body).encode()


async def drop_consumer(client: Client, api: str, stream: str, name: str) -> None:
    """End a consumer, whoever has it."""
    subject = f"{api}.CONSUMER.DELETE.{stream}.{name}"
    await client.request(subject, timeout=ANSWER_S)
