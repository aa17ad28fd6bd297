"""NATS as k8s/base sets it up: TLS for everybody, and to each what the topics say."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from nats.aio.client import Client

from contracts.codec import encode
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import StateMessage
from contracts.solves import SolveMessage
from contracts.topics import DECISIONS, SOLVES, STATE, TOPICS, Topic
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from runtime.bus.permissions import PASSWORDS, RELAYS, SUBSCRIBERS
from runtime.errors import BusRefusedError, BusUnavailableError, NotAllowedError
from runtime.users import (
    USERS,
    api_prefix,
    is_outside,
    logins_of,
    password_variable,
)
from runtime.wire import BusSettings, Outgoing
from tests.builders import device_class, gang, member, member_claim, request
from tests.builders.decisions import gang_released
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.manifests import WITHOUT_KUBELET, environment
from tests.lab.secured_nats import SecuredNats
from tests.lab.services import Process, eventually, is_ready, observe, running

MAIN = (sys.executable, "-c", "from moorings.cli.main import main; main()")
VIOLATION = "Violation"
PATIENCE_S = 1.0
FLEET = Path("moorings/fleets/small.yaml")
GANG = gang(member(member_claim(request(device_class="gpu.moorings.dev")), count=2))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNats]:
    """The three servers; their certificates need openssl, which CI has."""
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")
    nats = SecuredNats(tmp_path_factory.mktemp("secured"))
    with nats.running():
        yield nats


async def _connect(settings: BusSettings) -> None:
    async with Bus.open(settings) as bus:
        await bus.wait_connected(PATIENCE_S)


# --- who is let in ----------------------------------------------------------------


async def test_user_with_password_over_tls_is_let_in(secured: SecuredNats) -> None:
    for user in USERS:
        await _connect(secured.settings(user))


async def test_both_logins_of_a_user_are_let_in(
    secured: SecuredNats, tmp_path: Path
) -> None:
    """So one password can be replaced while clients present the other."""
    passwords = dict(
        line.split(": ")
        for line in (secured.folder / PASSWORDS).read_text().splitlines()
    )
    for user in USERS:
        for login in logins_of(user):
            presented = tmp_path / login
            presented.write_text(f"{login}:{passwords[password_variable(login)]}\n")
            settings = structs.replace(
                secured.settings(user), password_file=str(presented)
            )
            await _connect(settings)


@pytest.mark.parametrize("lack", ["ca_file", "password_file"])
async def test_who_lacks_something_is_kept_out(secured: SecuredNats, lack: str) -> None:
    settings = structs.replace(secured.settings("solver"), **{lack: ""})
    with pytest.raises(BusUnavailableError):
        await _connect(settings)


async def test_wrong_password_is_refused(secured: SecuredNats, tmp_path: Path) -> None:
    """Also that of another user."""
    _, _, password = secured.password_file("publisher").read_text().partition(":")
    wrong = tmp_path / "password"
    wrong.write_text(f"solver.a:{password}")
    settings = structs.replace(secured.settings("solver"), password_file=str(wrong))
    with pytest.raises(BusUnavailableError):
        await _connect(settings)


async def test_server_of_another_authority_is_told_nothing(
    secured: SecuredNats, tmp_path: Path
) -> None:
    """Not even the user: the client ends in the handshake."""
    other = SecuredNats(tmp_path)
    settings = structs.replace(secured.settings("solver"), ca_file=str(other.authority))
    with pytest.raises(BusUnavailableError):
        await _connect(settings)


# --- what each may do -------------------------------------------------------------


class Refusals:
    """A plain client of a user, and what the server forbade it."""

    def __init__(self, client: Client, words: list[str]) -> None:
        self._client = client
        self._words = words

    async def may_publish(self, subject: str) -> bool:
        """Publish nothing to a subject, and hear what the server says of it."""
        await self._client.publish(subject, b"")
        await self._client.flush()
        await self._client.flush()
        return f'for publish to "{subject.lower()}"' not in " ".join(self._words)

    async def may_subscribe(self, subject: str) -> bool:
        """Subscribe, and hear what the server says of it."""
        await self._client.subscribe(subject)
        await self._client.flush()
        await self._client.flush()
        return f'for subscription to "{subject.lower()}"' not in " ".join(self._words)


@pytest.fixture
async def refusals(secured: SecuredNats, user: str) -> AsyncIterator[Refusals]:
    words: list[str] = []
    async with secured.client(user, words.append) as client:
        yield Refusals(client, words)


def _some(topic: Topic[Any]) -> str:
    return topic.any_subject.replace("*", "x")


@pytest.mark.parametrize("user", USERS)
async def test_user_sends_what_the_table_lets_it_send(
    refusals: Refusals, user: str
) -> None:
    """Each entity, by each user: yes exactly for its senders, and for their relays."""
    allowed = {
        topic.entity for topic in TOPICS if await refusals.may_publish(_some(topic))
    }

    senders = (user, *filter(is_outside, USERS)) if user in RELAYS else (user,)
    assert allowed == {t.entity for t in TOPICS if {*senders} & {*t.senders}}


@pytest.mark.parametrize("user", USERS)
async def test_user_reads_streams_that_the_table_lets_it_read(
    refusals: Refusals, user: str
) -> None:
    """Those in CORE read all: they ask for those outside as well."""
    allowed = {
        topic.stream
        for topic in TOPICS
        if await refusals.may_publish(f"{api_prefix(user)}.DIRECT.GET.{topic.stream}")
    }

    is_within = not is_outside(user)
    assert allowed == {t.stream for t in TOPICS if is_within or user in t.receivers}
    made = f"{api_prefix(user)}.CONSUMER.CREATE.DEC.c"
    assert await refusals.may_publish(made) == is_within


NOBODY_PUBLISHES = (
    *(
        f"{api_prefix(user)}.STREAM.{operation}"
        for user in ("solver", "viewer")
        for operation in ("DELETE.DEC", "PURGE.STATE", "MSG.DELETE.DEC", "CREATE.MINE")
    ),
    f"{api_prefix('viewer')}.STREAM.UPDATE.DEC",
    "$SYS.REQ.SERVER.PING",
    "evt.dec.v1.x.x.x",
    "anything",
)


@pytest.mark.parametrize("topic", [STATE, SOLVES])
async def test_who_may_not_read_is_told_so_at_once(
    secured: SecuredNats, topic: Topic[StateMessage | SolveMessage]
) -> None:
    """What is of all namespaces, only `viewer` reads; not that there is nothing."""
    async with Bus.open(secured.settings("publisher")) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
    for user, is_allowed in (("platform", False), ("viewer", True)):
        async with open_bus_of(secured, user) as bus:
            reading = bus.read_existing(topic, "local", patient=False)
            if is_allowed:
                assert [batch async for batch in reading][-1].caught_up
                continue
            with pytest.raises(NotAllowedError, match="user 'platform' of the bus"):
                await anext(reading)


async def test_who_may_not_read_solves_reads_no_part_of_one(
    secured: SecuredNats,
) -> None:
    """A record's pages hold the claims, pods and devices of all namespaces."""
    async with open_bus_of(secured, "solver") as bus:
        await bus.ensure_streams()
        name = await bus.put_blob(b"what all asked for")
    async with open_bus_of(secured, "viewer") as bus:
        assert await bus.get_blob(name) == b"what all asked for"
    async with open_bus_of(secured, "platform") as bus:
        with pytest.raises(NotAllowedError, match="user 'platform' of the bus"):
            await bus.get_blob(name)


async def test_a_stream_that_is_not_there_is_said_so(secured: SecuredNats) -> None:
    missing = structs.replace(STATE, stream="NOWHERE")
    async with open_bus_of(secured, "solver") as bus:
        with pytest.raises(BusRefusedError):
            await anext(bus.read_existing(missing, "local", patient=False))


@asynccontextmanager
async def open_bus_of(secured: SecuredNats, user: str) -> AsyncIterator[Bus]:
    """Connect as a user who does not wait for long."""
    settings = structs.replace(secured.settings(user), request_timeout_s=60.0)
    async with Bus.open(settings) as bus:
        await bus.wait_connected(10)
        yield bus


@pytest.mark.parametrize("user", USERS)
async def test_nobody_does_what_no_service_does(
    secured: SecuredNats, refusals: Refusals, user: str
) -> None:
    """Nor hears what others are answered."""
    others = [f"_INBOX.{other}.>" for other in USERS if other != user]
    heard = [
        subject
        for subject in (">", "_INBOX.>", "inv.v1.>", *others)
        if await refusals.may_subscribe(subject)
    ]
    published = [
        subject for subject in NOBODY_PUBLISHES if await refusals.may_publish(subject)
    ]

    assert (heard, published) == ([], [])
    # Ended gangs leave by the hand of whoever leads.
    may_remove = await refusals.may_publish("$JS.API.STREAM.PURGE.DEC")
    assert may_remove == (user == "solver")
    assert await refusals.may_subscribe(f"_INBOX.{user}.x.>")
    for followed in ("evt.dec.v1.>", "evt.dec.v1.local.>", "evt.dec.v1.*.*.*"):
        # As docs/bus.md and the programs of docs/subscribers do; and relays, for them.
        allowed = user in (*SUBSCRIBERS, *RELAYS)
        assert await refusals.may_subscribe(followed) == allowed
    assert VIOLATION in secured.log()


# --- and it is enough -------------------------------------------------------------


async def test_stack_works_with_its_permissions(
    secured: SecuredNats, tmp_path: Path
) -> None:
    """A gang from submission to its manifests and its replay, and nobody is refused."""
    given = {
        "nodeagent": {"NODEAGENT_FLEET": str(FLEET), "NODEAGENT_NODE": ""},
        "solver": {},
        "publisher": {"PUBLISHER_FOLDER": str(tmp_path / "manifests")},
    }
    variables = {name: _variables(secured, name) | more for name, more in given.items()}
    processes = [
        Process(name, tmp_path / f"{name}.log", **found)
        for name, found in variables.items()
    ]
    (tmp_path / "gang.json").write_bytes(encode(to_kubernetes(GANG)))
    before = secured.log().count(VIOLATION)
    claims = tmp_path / "manifests" / "resourceclaims" / "team-a"

    async def written() -> bool:
        return len([*claims.glob("*.json")]) == 2  # a small folder

    async with running(*processes):
        await _know_class(secured)
        told = await _moorings(
            secured, "platform", "submit", "-f", str(tmp_path / "gang.json"), "--wait"
        )
        await eventually(written, "both claims are written")
        listed = await _moorings(secured, "viewer", "solves", "list", "-o", "json")
        solve = json.loads(listed)[0]["opened"]["solve"]
        replayed = await _moorings(secured, "viewer", "replay", solve)
        for name, found in variables.items():
            assert await is_ready(found[f"{name.upper()}_HEALTH_ADDRESS"])
        logs = "\n".join(process.log() for process in processes)

    assert "train submitted" in told
    assert ": same bytes" in replayed
    assert "violation" not in logs.lower()
    assert secured.log().count(VIOLATION) == before


async def test_news_of_decisions_come_once_to_whoever_listens_on_any_server(
    secured: SecuredNats,
) -> None:
    """By a relay, under the subject and with the headers of the stream."""
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        solver = await stack.enter_async_context(open_bus_of(secured, "solver"))
        await solver.ensure_streams()
        heard = []
        for user in SUBSCRIBERS:
            for url in secured.urls:
                settings = structs.replace(secured.settings(user), servers=(url,))
                bus = await stack.enter_async_context(Bus.open(settings))
                await bus.wait_connected(10)
                heard.append(await bus.subscribe("evt.dec.v1.east.>", stop))
        sent = [Outgoing.of(DECISIONS, gang_released(f"gang-{n}")) for n in range(3)]
        last = await solver.publish_batch(sent)
        for messages in heard:
            async with asyncio.timeout(10):
                got = [await anext(messages) for _ in sent]
            assert [m.subject for m in got] == [m.subject for m in sent]
            assert [m.sequence for m in got] == [last - 2, last - 1, last]
        stop.set()


async def _know_class(secured: SecuredNats) -> None:
    """Say what classes there are, as a publisher beside a cluster does."""
    async with Bus.open(secured.settings("publisher")) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
        await observe(
            bus, device_class("gpu.moorings.dev", "device.driver == 'gpu.moorings.dev'")
        )


def _variables(secured: SecuredNats, service: str) -> dict[str, str]:
    """Give a service what k8s/base gives it, but for places."""
    pod = {"metadata_name": "p", "metadata_namespace": "n", "spec_nodeName": "node-0"}
    prefix = service.upper()
    apart = WITHOUT_KUBELET if service == "nodeagent" else {}
    return (
        environment(service, metadata_uid="u", **pod)
        | apart
        | {
            f"{prefix}_SERVERS": ",".join(secured.urls),
            f"{prefix}_BUS_CA_FILE": str(secured.authority),
            f"{prefix}_BUS_PASSWORD_FILE": str(secured.password_file(service)),
            f"{prefix}_HEALTH_ADDRESS": f"127.0.0.1:{find_free_port()}",
        }
    )


async def _moorings(secured: SecuredNats, user: str, *arguments: str) -> str:
    """Run the command line as a user of the bus; gives what it prints."""
    variables = {
        "MOORINGS_SERVER": secured.urls[0],
        "MOORINGS_BUS_CA_FILE": str(secured.authority),
        "MOORINGS_BUS_USER": user,
        "MOORINGS_BUS_PASSWORD_FILE": str(secured.password_file(user)),
    }
    process = await asyncio.create_subprocess_exec(
        *MAIN,
        *arguments,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return told.decode()
