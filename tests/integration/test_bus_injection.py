"""Nobody outside CORE stores, wipes or uses up what the table does not let it.

Permissions of nats-server look at the subject of a message and never at its reply,
on which the server publishes every acknowledgement, answer and pulled message. So each
user asks for all it may ask, with a subject of each row of the table as the reply.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from msgspec.structs import replace
from nats.aio.client import Client
from nats.errors import NoRespondersError

from contracts.streams import STREAMS
from contracts.topics import BLOBS, TOPICS, SubjectFamily
from runtime.bus.bus import Bus
from runtime.bus.follower import follow
from runtime.bus.jetstream import call
from runtime.errors import BusRefusedError
from runtime.users import (
    PLATFORM,
    USERS,
    VIEWER,
    api_prefix,
    consumer_names,
    is_outside,
)
from runtime.wire import Fetched
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
    client: Client, api: str, stream: str, consumer: str, **config: Any
) -> None:
    body = {
        "stream_name": stream,
        "config": {
            "name": consumer,
            "ack_policy": "none",
            "mem_storage": True,
            **config,
        },
    }
    with suppress(NoRespondersError):
        await client.request(
            f"{api}.CONSUMER.CREATE.{stream}.{consumer}",
            json.dumps(body).encode(),
            timeout=ANSWER_S,
        )


async def _drop_consumer(client: Client, api: str, stream: str, name: str) -> None:
    subject = f"{api}.CONSUMER.DELETE.{stream}.{name}"
    await client.request(subject, timeout=ANSWER_S)


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
            own, *names = consumer_names(user)
            for name, family in zip(names, FAMILIES, strict=False):
                await _make_consumer(client, api, stream, name)
                pull = f"{api}.CONSUMER.MSG.NEXT.{stream}.{name}"
                await client.publish(pull, b"", reply=_on(family, f"{user}-pulled"))
            await _make_consumer(client, api, stream, own)
            pull = f"{api}.CONSUMER.MSG.NEXT.{stream}.{own}"
            assert await _pulled(client, pull)
            for name in (own, *names[: len(FAMILIES)]):
                await _drop_consumer(client, api, stream, name)

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
            for name, target in zip(consumer_names(user), targets, strict=False):
                await _make_consumer(client, api, stream, name, deliver_subject=target)
        assert await _stored(secured) == before
        for stream in sorted(streams):
            for name in consumer_names(user)[: len(targets)]:
                await _drop_consumer(client, api, stream, name)


@pytest.mark.parametrize("user", [VIEWER, PLATFORM])
async def test_who_reads_leaves_services_their_consumers(
    secured: SecuredNats, user: str
) -> None:
    """It has those of its names and no more; those that are free, its readers use."""
    api, own = api_prefix(user), consumer_names(user)
    (other,) = {VIEWER, PLATFORM} - {user}
    others = ("any", f"{user}-{len(own)}", consumer_names(other)[0])
    async with (
        secured.client(user) as client,
        _bus_of(secured, user) as bus,
        _bus_of(secured, "solver") as solver,
    ):
        for name in others:
            # By the subject; and by what its body says on a subject that is allowed.
            await client.publish(f"{api}.CONSUMER.CREATE.DEC.{name}", b"{}")
            await _make_consumer(client, api, "DEC", own[0], name=name)
        for legacy in ("CREATE.DEC", f"DURABLE.CREATE.DEC.{own[0]}"):
            await client.publish(f"{api}.CONSUMER.{legacy}", b"{}")
        for name in own:
            await _make_consumer(client, api, "DEC", name)

        assert await _consumers(solver) == len(own)
        with pytest.raises(BusRefusedError, match="consumer already exists"):
            await _read_decisions(bus)
        assert await _read_decisions(solver) == [b"kept"]

        for name in own[16:]:
            await _drop_consumer(client, api, "DEC", name)
        readings = [_decisions(bus, asyncio.Event()) for _ in range(16)]
        await asyncio.gather(*map(anext, readings))
        assert await _consumers(solver) == 32  # one each
        await asyncio.gather(*(reading.aclose() for reading in readings))
        assert await _read_decisions(bus) == [b"kept"]
        for name in own[:16]:
            await _drop_consumer(client, api, "DEC", name)
        assert await _consumers(solver) == 0


@asynccontextmanager
async def _bus_of(secured: SecuredNats, user: str) -> AsyncIterator[Bus]:
    settings = replace(secured.settings(user), request_timeout_s=ANSWER_S)
    async with Bus.open(settings) as bus:
        await bus.wait_connected(ANSWER_S)
        yield bus


async def _consumers(bus: Bus) -> int:
    """Count those of DEC."""
    info = await call(bus._connection, "STREAM.INFO.DEC", None, dict[str, Any])
    return int(info["state"]["consumer_count"])


def _decisions(bus: Bus, stop: asyncio.Event) -> AsyncGenerator[Fetched, None]:
    """Read DEC by a consumer; who is refused one is told."""
    subjects = ["dec.v1.>"]
    return follow(
        bus._connection, "DEC", subjects, stop, "last_per_subject", patient=False
    )


async def _read_decisions(bus: Bus) -> list[bytes]:
    """Read what DEC holds."""
    stop = asyncio.Event()
    read: list[bytes] = []
    async for page in _decisions(bus, stop):
        read += [message.data for message in page.messages]
        if page.synced:
            stop.set()
    return read


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
