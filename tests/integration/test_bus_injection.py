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
from runtime.bus import consumer
from runtime.bus.bus import Bus
from runtime.bus.follower import follow
from runtime.bus.jetstream import call, purge
from runtime.errors import BusRefusedError, BusUnavailableError
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
    client: Client,
    api: str,
    stream: str,
    name: str,
    /,
    *,
    action: str = "",
    **config: Any,
) -> None:
    body = {
        "stream_name": stream,
        "action": action,
        "config": {
            "name": name,
            "ack_policy": "none",
            "mem_storage": True,
            **config,
        },
    }
    with suppress(NoRespondersError):
        await client.request(
            f"{api}.CONSUMER.CREATE.{stream}.{name}",
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

        await _until_consumers(solver, len(own))
        all_used = f"all {len(own)} consumers of DEC for {user} are in use"
        with pytest.raises(BusRefusedError, match=all_used):
            await _read_decisions(bus)
        assert await _read_decisions(solver) == [b"kept"]

        for name in own[:16]:
            await _drop_consumer(client, api, "DEC", name)
        readings = [_decisions(bus, asyncio.Event()) for _ in range(16)]
        await asyncio.gather(*map(anext, readings))
        await _until_consumers(solver, len(own))  # one each, and none is left
        await asyncio.gather(*(reading.aclose() for reading in readings))
        assert await _read_decisions(bus) == [b"kept"]
        for name in own[16:]:
            await _drop_consumer(client, api, "DEC", name)
        await _until_consumers(solver, 0)


async def test_a_reader_finds_that_its_consumer_was_changed(
    secured: SecuredNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for what it missed, though later messages came."""
    monkeypatch.setattr(consumer, "_PULL_S", 1)
    monkeypatch.setattr(consumer, "_SURE_S", 0.0)
    api, stop = api_prefix(VIEWER), asyncio.Event()
    read: list[str] = []
    async with (
        _bus_of(secured, VIEWER) as bus,
        _bus_of(secured, "solver") as solver,
        secured.client(VIEWER) as hostile,
        secured.client("solver") as sender,
    ):

        async def interfere() -> None:
            (config,) = await _configs(hostile, api)
            config["filter_subjects"] = ["dec.v1.changed.shown.*"]
            name = config.pop("name")
            await _make_consumer(hostile, api, "DEC", name, action="update", **config)
            for name in ("hidden", "shown"):
                await sender.request(f"dec.v1.changed.{name}.g", timeout=ANSWER_S)

        subjects = ["dec.v1.changed.>"]
        pages = follow(bus._connection, "DEC", subjects, stop, "all")
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            assert (await anext(pages)).synced
            tasks.create_task(interfere())
            async for page in pages:
                read += [message.subject.split(".")[3] for message in page.messages]
                if "hidden" in read and page.synced:
                    stop.set()
        await purge(solver._connection, "DEC", "dec.v1.changed.>")
        await _until_consumers(solver, 0)

    assert read[-2:] == ["hidden", "shown"]


async def test_a_reader_leaves_alone_whoever_has_its_name_now(
    secured: SecuredNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for so long that the server ended its consumer."""
    monkeypatch.setattr(consumer, "_PULL_S", 1)
    monkeypatch.setattr(consumer, "_UNUSED_NAMED_S", 1)
    monkeypatch.setattr(consumer, "_SURE_S", 0.0)
    api = api_prefix(VIEWER)
    async with (
        _bus_of(secured, VIEWER) as bus,
        secured.client(VIEWER) as client,
    ):
        late = consumer.Consumer(bus._connection, "DEC", lambda: None)
        await late.create(["dec.v1.none.>"], {"deliver_policy": "all"})
        async with asyncio.timeout(60):
            while "config" in await _info(client, api, late.name):  # noqa: ASYNC110 # no event
                await asyncio.sleep(0.05)
        await _make_consumer(client, api, "DEC", late.name)

        await late.pull()
        assert not late.usable
        await late.discard()

        info = await _info(client, api, late.name)
        assert info["num_waiting"] == 0
        await _drop_consumer(client, api, "DEC", late.name)


async def test_who_got_no_answer_ends_nobodys_consumer(
    secured: SecuredNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name that it asked for may be another's."""
    api, own = api_prefix(VIEWER), consumer_names(VIEWER)
    async with (
        _bus_of(secured, VIEWER) as bus,
        _bus_of(secured, "solver") as solver,
        secured.client(VIEWER) as client,
    ):
        for name in own:
            await _make_consumer(client, api, "DEC", name)
        await _until_consumers(solver, len(own))
        unanswered = consumer.Consumer(bus._connection, "DEC", lambda: None)
        with monkeypatch.context() as hurried:
            hurried.setattr(consumer, "REQUEST_S", 1e-9)
            with pytest.raises(BusUnavailableError, match="no answer"):
                await unanswered.create(["dec.v1.>"], {})
        await unanswered.discard()

        assert len(await _configs(client, api)) == len(own)
        for name in own:
            await _drop_consumer(client, api, "DEC", name)


async def _configs(client: Client, api: str) -> list[dict[str, Any]]:
    """Read how the viewer's consumers of DEC were made; by guessing their names."""
    infos = [await _info(client, api, name) for name in consumer_names(VIEWER)]
    return [info["config"] for info in infos if "config" in info]


async def _info(client: Client, api: str, name: str) -> dict[str, Any]:
    subject = f"{api}.CONSUMER.INFO.DEC.{name}"
    answer = await client.request(subject, timeout=ANSWER_S)
    return dict(json.loads(answer.data))


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


async def _until_consumers(bus: Bus, count: int) -> None:
    """The stream's leader hears a little later of what other servers have made."""
    async with asyncio.timeout(60):
        while await _consumers(bus) != count:  # noqa: ASYNC110 # no event
            await asyncio.sleep(0.05)


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


@pytest.mark.parametrize("user", [u for u in OUTSIDE if u != VIEWER])
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
