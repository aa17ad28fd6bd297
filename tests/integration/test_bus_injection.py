"""Nobody outside CORE stores or wipes what the table does not let it.

Permissions of nats-server look at the subject of a message and never at its reply,
on which the server publishes every acknowledgement, answer and pulled message. So each
user asks for all it may ask, with a subject of each row of the table as the reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError

from contracts.streams import STREAMS
from contracts.topics import BLOBS, TOPICS
from runtime.users import USERS, VIEWER, api_prefix, consumer_names, is_outside
from tests.lab.secured_nats import SecuredNats
from tests.lab.seeded_bus import (
    ANSWER_S,
    FAMILIES,
    SEED,
    drop_consumer,
    make_consumer,
    on_row,
)

OUTSIDE = tuple(filter(is_outside, USERS))
HOSTILE_HEADERS = (
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"Nats-TTL": "1"},
    {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "TARGET"},
)


async def _stored(nats: SecuredNats) -> set[tuple[str, str]]:
    """List the subjects of all streams, each with the stream that holds it."""
    stored: set[tuple[str, str]] = set()
    async with nats.client("solver") as client:
        for stream in STREAMS:
            answer = await client.request(
                f"$JS.API.STREAM.INFO.{stream.name}",
                json.dumps({"subjects_filter": ">"}).encode(),
                timeout=ANSWER_S,
            )
            subjects = json.loads(answer.data)["state"].get("subjects") or ()
            stored |= {(stream.name, subject) for subject in subjects}
    return stored


def _requests(user: str) -> Iterator[tuple[str, bytes]]:
    """All that a user may ask and be answered, but for pulls: subject and body."""
    api = api_prefix(user)
    for family in FAMILIES:
        last = json.dumps({"last_by_subj": on_row(family, SEED)}).encode()
        if user in family.senders:
            yield on_row(family, "own"), b"forged"
        if user in {*family.senders, *family.receivers}:
            yield f"{api}.STREAM.MSG.GET.{family.stream}", last
        if user in family.receivers and family is not BLOBS:
            yield f"{api}.STREAM.INFO.{family.stream}", b""
    if user in BLOBS.receivers:
        yield f"{api}.DIRECT.GET.{BLOBS.stream}.{on_row(BLOBS, SEED)}", b""


async def _pulled(client: Client, pull: str) -> bytes:
    """Pull a message; the other servers learn of a new consumer a little later."""
    while True:
        with suppress(NoRespondersError):
            # What is pulled keeps its own subject, which the new style cannot read.
            message = await client.request(pull, timeout=ANSWER_S, old_style=True)
            return bytes(message.data)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("user", OUTSIDE)
async def test_no_answer_reaches_a_stream_by_its_reply(
    seeded: SecuredNats, user: str
) -> None:
    """Of publishing, of the API, of direct gets."""
    before = await _stored(seeded)
    async with seeded.client(user) as client:
        for subject, body in _requests(user):
            for family in FAMILIES:
                reply = on_row(family, f"{user}-answer")
                await client.publish(subject, body, reply=reply)
            # Answered too, and after those: the request is one that is served.
            answer = await client.request(subject, body, timeout=ANSWER_S)
            assert answer.data

    own = {(f.stream, on_row(f, "own")) for f in FAMILIES if user in f.senders}
    assert await _stored(seeded) == before | own


@pytest.mark.parametrize("user", [user for user in OUTSIDE if user != "nodeagent"])
async def test_no_pulled_message_reaches_a_stream_by_its_reply(
    seeded: SecuredNats, user: str
) -> None:
    """Though its content may be the puller's own."""
    before = await _stored(seeded)
    api = api_prefix(user)
    streams = {topic.stream for topic in TOPICS if user in topic.receivers}
    async with seeded.client(user) as client:
        for stream in sorted(streams):
            own, *names = consumer_names(user)
            for name, family in zip(names, FAMILIES, strict=False):
                await make_consumer(client, api, stream, name)
                pull = f"{api}.CONSUMER.MSG.NEXT.{stream}.{name}"
                await client.publish(pull, b"", reply=on_row(family, f"{user}-pulled"))
            await make_consumer(client, api, stream, own)
            pull = f"{api}.CONSUMER.MSG.NEXT.{stream}.{own}"
            assert await _pulled(client, pull)
            for name in (own, *names[: len(FAMILIES)]):
                await drop_consumer(client, api, stream, name)

    assert await _stored(seeded) == before


@pytest.mark.parametrize("user", OUTSIDE)
async def test_no_push_consumer_delivers_into_a_stream(
    seeded: SecuredNats, user: str
) -> None:
    """Nor to JetStream's API, where a message could be a request."""
    before = await _stored(seeded)
    api = api_prefix(user)
    targets = [on_row(family, f"{user}-pushed") for family in FAMILIES]
    targets += [f"$JS.API.STREAM.{what}.DEC" for what in ("PURGE", "DELETE")]
    streams = {topic.stream for topic in TOPICS if user in topic.receivers}
    async with seeded.client(user) as client:
        for stream in sorted(streams):
            for name, target in zip(consumer_names(user), targets, strict=False):
                await make_consumer(client, api, stream, name, deliver_subject=target)
        assert await _stored(seeded) == before
        for stream in sorted(streams):
            for name in consumer_names(user)[: len(targets)]:
                await drop_consumer(client, api, stream, name)


@pytest.mark.parametrize("user", [u for u in OUTSIDE if u != VIEWER])
async def test_no_header_wipes_what_others_sent(seeded: SecuredNats, user: str) -> None:
    """Rollups, times to live and schedules are refused; an id hides nothing."""
    before = await _stored(seeded)
    own = [family for family in FAMILIES if user in family.senders]
    async with seeded.client(user) as client:
        for family in own:
            for headers in HOSTILE_HEADERS:
                target = on_row(family, SEED)
                answer = await client.request(
                    on_row(family, f"{user}-hostile"),
                    b"hostile",
                    headers={
                        k: v.replace("TARGET", target) for k, v in headers.items()
                    },
                    timeout=ANSWER_S,
                )
                assert "error" in json.loads(answer.data), headers
    assert await _stored(seeded) == before
