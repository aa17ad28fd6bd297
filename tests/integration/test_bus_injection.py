"""Nobody outside CORE stores, or wipes, what the table of topics does not let it.

Permissions of nats-server look at the subject of a message and never at its reply,
on which the server publishes every acknowledgement, answer and pulled message. So each
user asks for all it may ask, with a subject of each row of the table as the reply.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError

from contracts.streams import STREAMS
from contracts.topics import BLOBS, TOPICS, SubjectFamily
from runtime.bus.bus import Bus
from runtime.users import USERS, api_prefix, is_outside
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.secured_nats import SecuredNats

OUTSIDE = tuple(filter(is_outside, USERS))
FAMILIES: tuple[SubjectFamily, ...] = (*TOPICS, BLOBS)
SEED = "seed"
ANSWER_S = 20.0

HOSTILE_HEADERS = (
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"Nats-TTL": "1"},
    {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "TARGET"},
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNats]:
    """The three servers; their certificates need openssl, which CI has."""
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")
    nats = SecuredNats(tmp_path_factory.mktemp("secured"))
    with nats.running():
        asyncio.run(_seed(nats))
        yield nats


async def _seed(nats: SecuredNats) -> None:
    """Make the streams, and put a message on a subject of each row."""
    async with Bus.open(nats.settings("publisher")) as bus:
        await bus.wait_connected(ANSWER_S)
        await bus.ensure_streams()
    for family in FAMILIES:
        async with nats.client(family.senders[0]) as client:
            await client.request(_on(family, SEED), b"kept", timeout=ANSWER_S)


def _on(family: SubjectFamily, name: str) -> str:
    """Give a subject of a row, each of its names this one."""
    return family.any_subject.replace("*", name)


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
        last = json.dumps({"last_by_subj": _on(family, SEED)}).encode()
        if user in family.senders:
            yield _on(family, "own"), b"forged"
        if user in {*family.senders, *family.receivers}:
            yield f"{api}.STREAM.MSG.GET.{family.stream}", last
        if user in family.receivers and family is not BLOBS:
            yield f"{api}.STREAM.INFO.{family.stream}", b""
    if user in BLOBS.receivers:
        yield f"{api}.DIRECT.GET.{BLOBS.stream}.{_on(BLOBS, SEED)}", b""


async def _make_consumer(
    client: Client, api: str, stream: str, name: str, **config: Any
) -> None:
    body = {
        "stream_name": stream,
        "config": {"name": name, "ack_policy": "none", "mem_storage": True, **config},
    }
    with suppress(NoRespondersError):
        await client.request(
            f"{api}.CONSUMER.CREATE.{stream}.{name}",
            json.dumps(body).encode(),
            timeout=ANSWER_S,
        )


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
    secured: SecuredNats, user: str
) -> None:
    """Of publishing, of the API, of direct gets."""
    before = await _stored(secured)
    async with secured.client(user) as client:
        for subject, body in _requests(user):
            for family in FAMILIES:
                reply = _on(family, f"{user}-answer")
                await client.publish(subject, body, reply=reply)
            # Answered too, and after those: the request is one that is served.
            answer = await client.request(subject, body, timeout=ANSWER_S)
            assert answer.data

    own = {(f.stream, _on(f, "own")) for f in FAMILIES if user in f.senders}
    assert await _stored(secured) == before | own


@pytest.mark.parametrize("user", [user for user in OUTSIDE if user != "nodeagent"])
async def test_no_pulled_message_reaches_a_stream_by_its_reply(
    secured: SecuredNats, user: str
) -> None:
    """Though its content may be the puller's own."""
    before = await _stored(secured)
    api = api_prefix(user)
    streams = {topic.stream for topic in TOPICS if user in topic.receivers}
    async with secured.client(user) as client:
        for stream in sorted(streams):
            for number, family in enumerate(FAMILIES):
                name = f"{user}-{number}"
                await _make_consumer(client, api, stream, name)
                pull = f"{api}.CONSUMER.MSG.NEXT.{stream}.{name}"
                await client.publish(pull, b"", reply=_on(family, f"{user}-pulled"))
            await _make_consumer(client, api, stream, f"{user}-own")
            pull = f"{api}.CONSUMER.MSG.NEXT.{stream}.{user}-own"
            assert await _pulled(client, pull)

    assert await _stored(secured) == before


@pytest.mark.parametrize("user", OUTSIDE)
async def test_no_push_consumer_delivers_into_a_stream(
    secured: SecuredNats, user: str
) -> None:
    """Nor to JetStream's API, where a message could be a request."""
    before = await _stored(secured)
    api = api_prefix(user)
    targets = [_on(family, f"{user}-pushed") for family in FAMILIES]
    targets += [f"$JS.API.STREAM.{what}.DEC" for what in ("PURGE", "DELETE")]
    streams = {topic.stream for topic in TOPICS if user in topic.receivers}
    async with secured.client(user) as client:
        for stream in sorted(streams):
            for number, target in enumerate(targets):
                await _make_consumer(
                    client, api, stream, f"push-{number}", deliver_subject=target
                )

    assert await _stored(secured) == before


@pytest.mark.parametrize("user", [u for u in OUTSIDE if u != "viewer"])
async def test_no_header_wipes_what_others_sent(
    secured: SecuredNats, user: str
) -> None:
    """Rollups, times to live and schedules are refused; an id hides nothing."""
    before = await _stored(secured)
    own = [family for family in FAMILIES if user in family.senders]
    async with secured.client(user) as client:
        for family in own:
            for headers in HOSTILE_HEADERS:
                target = _on(family, SEED)
                answer = await client.request(
                    _on(family, f"{user}-hostile"),
                    b"hostile",
                    headers={
                        k: v.replace("TARGET", target) for k, v in headers.items()
                    },
                    timeout=ANSWER_S,
                )
                assert "error" in json.loads(answer.data), headers
    assert await _stored(secured) == before
