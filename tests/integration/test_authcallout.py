"""Who is who on the bus by a token of Kubernetes, with a real control plane.

Service accounts, roles and tokens are real; so are nats-server and the callout.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from nats.aio.client import Client

from benchmarks.bus import logins
from contracts.topics import COMMANDS, HEALTH, HEARTBEATS, INVENTORIES, SUBMISSIONS
from runtime.bus.bus import Bus
from runtime.errors import BusError, BusUnavailableError, NotAllowedError
from runtime.users import VOUCHED
from runtime.wire import Outgoing
from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.manifests import WITHOUT_KUBELET, agent_variables, environment
from tests.lab.personas import SYSTEM
from tests.lab.services import Process, eventually, running
from tests.lab.soak import sized
from tests.lab.token_bus import TokenBus, agent_pod, token_of

CLUSTER = "local"
FLEET = Path("moorings/fleets/small.yaml")
ACCOUNT = "system:serviceaccount:team-a:submitter"
EVERYWHERE = "system:serviceaccount:team-b:everywhere"
AGENT_1, PLATFORM = "nodeagent gpu-1", f"platform {ACCOUNT}"
NEVER_S = 1.5
"""So long nobody is let in who may not."""
START_S = 60.0
HONEST, JUNK = 5, sized(30, 300)
"""Agents with tokens of their own, and clients with none."""
LET_IN_S = 5.0
SHORT_S = "2"
"""How long the users live that the tests of renewal get."""


class World(NamedTuple):
    """A bus whose users Kubernetes vouches for, and its two callouts."""

    bus: TokenBus
    callouts: tuple[Process, Process]
    kubectl: Kubectl
    pods: dict[str, Json]
    """The agent's pod of each node."""

    def agent(self, node: str) -> str:
        """Make a token of the agent on a node."""
        return token_of(self.kubectl, f"{SYSTEM}/nodeagent", self.pods[node])

    def platform(self, account: str = "team-a/submitter") -> str:
        """Make a token of a platform."""
        return token_of(self.kubectl, account)

    @asynccontextmanager
    async def connected(self, user: str, token: str = "") -> AsyncIterator[Bus]:
        """Connect a user, who must be let in."""
        settings = self.bus.settings(user, token)
        async with Bus.open(settings) as bus:
            await bus.wait_connected(10)
            yield bus

    async def refused(self, user: str, token: str) -> str:
        """Try to connect somebody who must not be; gives why, as the callouts say."""
        before, words = self.said(), ""
        async with Bus.open(self.bus.settings(user, token)) as bus:
            while "Authorization Violation" not in words:
                with pytest.raises(BusUnavailableError) as refusal:
                    await bus.wait_connected(NEVER_S)
                words = str(refusal.value)
        return self.said().removeprefix(before)

    def said(self) -> str:
        """Read what both callouts logged."""
        return "".join(process.log() for process in self.callouts)


@pytest.fixture(scope="module")
def world(
    installed: Installed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("tokens")
    kubectl, bus = installed.kubectl, TokenBus(folder)
    given = [objects.node("gpu-1"), objects.node("gpu-2"), *_platforms()]
    kubectl("apply", "-f", "-", given=given)
    pods = {node: agent_pod(kubectl, node) for node in ("gpu-1", "gpu-2")}
    kubeconfig = folder / "authcallout.kubeconfig"
    own = kubectl("create", "token", "authcallout", "-n", SYSTEM).strip()
    installed.control_plane.write_kubeconfig(kubeconfig, own)
    lifetime = {"LIFETIME_S": SHORT_S}
    callouts = tuple(bus.callout(n, kubeconfig, **lifetime) for n in ("one", "two"))
    bus.start()
    try:
        for process in callouts:
            process.start()
        for process in callouts:
            _await_started(process)
        yield World(bus, (callouts[0], callouts[1]), kubectl, pods)
    finally:
        for process in callouts:
            process.close()
        bus.stop()
        kubectl("delete", "--wait=false", "-f", "-", given=[*pods.values(), *given])


def _await_started(process: Process) -> None:
    until_s = time.monotonic() + START_S
    while "service.started" not in process.log():
        assert time.monotonic() < until_s, process.log()
        time.sleep(0.05)


def _platforms() -> Iterator[Json]:
    """Make who may do all in team-a, who may do all everywhere, and who may nothing."""
    for namespace, name in (("team-a", "submitter"), ("team-b", "everywhere")):
        yield named("v1", "Namespace", namespace)
        yield named("v1", "ServiceAccount", name, namespace)
    yield named("v1", "ServiceAccount", "stranger", "team-b")
    rbac, role = "rbac.authorization.k8s.io", "moorings-gang-author"
    for kind, namespace, (place, name) in (
        ("RoleBinding", "team-a", ("team-a", "submitter")),
        ("ClusterRoleBinding", "", ("team-b", "everywhere")),
    ):
        binding = named(f"{rbac}/v1", kind, f"tokens-{name}", namespace)
        binding["roleRef"] = {"apiGroup": rbac, "kind": "ClusterRole", "name": role}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": place}
        yield {**binding, "subjects": [subject]}


@pytest.fixture(autouse=True)
async def streams(world: World) -> None:
    """All streams, as a service of ours makes them."""
    async with world.connected("publisher") as bus:
        await bus.ensure_streams()


async def _send(bus: Bus, subject: str, data: bytes = b"{}") -> int:
    return await bus.publish(Outgoing(subject=subject, data=data))


async def _forbidden(bus: Bus, *subjects: str) -> None:
    for subject in subjects:
        with pytest.raises(BusError, match="not allowed for user"):
            await _send(bus, subject)


# --- who may do what ----------------------------------------------------------------


async def test_agent_speaks_for_its_node_alone(world: World) -> None:
    topics = (INVENTORIES, HEALTH, HEARTBEATS)
    async with world.connected(AGENT_1, world.agent("gpu-1")) as bus:
        for topic in topics:
            assert await _send(bus, topic.subject(CLUSTER, "gpu-1"))
        others = [topic.subject(CLUSTER, "gpu-2") for topic in topics]
        await _forbidden(bus, *others, INVENTORIES.subject("other", "gpu-1"))
        await _forbidden(bus, SUBMISSIONS.subject(CLUSTER, "team-a", "u"))
        found = await bus.last("INV", INVENTORIES.subject(CLUSTER, "gpu-1"))
    assert found is not None


async def test_platform_submits_where_it_may_create_gangs(world: World) -> None:
    async with world.connected(PLATFORM, world.platform()) as bus:
        for topic in (SUBMISSIONS, COMMANDS):
            assert await _send(bus, topic.subject(CLUSTER, "team-a", "u1"))
            await _forbidden(bus, topic.subject(CLUSTER, "team-b", "u1"))
            await _forbidden(bus, topic.subject("other", "team-a", "u1"))
        await _forbidden(bus, INVENTORIES.subject(CLUSTER, "gpu-1"))


async def test_agents_that_come_back_at_once_are_all_let_in(
    world: World, installed: Installed, tmp_path: Path
) -> None:
    """When the server was restarted, too; none of them is told no for good."""
    async with logins.bench(installed.control_plane, tmp_path) as bench:
        pods = [pod for pod in world.pods.values() for _ in range(30)]
        agents = [await logins.token_of(bench.kube, pod) for pod in pods]
        rows = await logins.measure(bench, agents, pause_s=0.0)

    assert [row["all"] for row in rows] == ["begin", "come back"]
    for row in rows:
        assert int(row["granted"]) >= len(agents)
        assert (row["refused"], row["dropped"], row["failed"]) == (0, 0, 0)


async def test_platform_of_all_namespaces_submits_to_each(world: World) -> None:
    user = f"platform {EVERYWHERE} *"
    token = world.platform("team-b/everywhere")
    async with world.connected(user, token) as bus:
        for namespace in ("team-a", "team-c"):
            subject = SUBMISSIONS.subject(CLUSTER, namespace, "all")
            assert await _send(bus, subject)
            assert await bus.last("SUBMIT", subject) is not None
        # Whole streams, by pages.
        pages = bus.read_existing(SUBMISSIONS, CLUSTER, patient=False)
        assert [page async for page in pages][-1].caught_up
        await _forbidden(bus, "JS.CORE.API.DIRECT.GET.STATE")


async def test_platform_reads_its_namespaces_and_no_other(world: World) -> None:
    mine, other = (SUBMISSIONS.subject(CLUSTER, n, "read") for n in ("team-a", "x"))
    async with world.connected("publisher") as bus:
        for subject in (mine, other):
            await _send(bus, subject, b"{}")
    async with world.connected(PLATFORM, world.platform()) as bus:
        found = await bus.last("SUBMIT", mine)
        assert found is not None
        assert (found.subject, found.data) == (mine, b"{}")
        assert await bus.last("SUBMIT", f"{mine}-not") is None
        with pytest.raises(NotAllowedError):
            await bus.last("SUBMIT", other)


async def test_an_answer_is_stored_nowhere(world: World) -> None:
    """A reply subject is looked at by no permission, so it must reach no stream."""
    own, others = (INVENTORIES.subject(CLUSTER, n) for n in ("gpu-1", "gpu-2"))
    client = Client()
    await client.connect(world.bus.url, user=AGENT_1, password=world.agent("gpu-1"))
    await client.publish(own, b"x", reply=others)
    await client.publish("JS.CORE.API.STREAM.MSG.GET.INV", b"{}", reply=others)
    await client.flush()
    await client.close()
    async with world.connected(AGENT_1, world.agent("gpu-1")) as bus:
        assert await _send(bus, own)
    async with world.connected("publisher") as bus:
        assert await bus.last("INV", others) is None


async def test_a_node_agent_needs_no_more_than_it_is_given(
    world: World, tmp_path: Path
) -> None:
    """With the variables of its DaemonSet; its users expire while it works."""
    token = tmp_path / "token"
    token.write_text(world.agent("gpu-1"))
    pod = {"metadata_uid": "u", "spec_nodeName": "gpu-1"}
    given = (
        environment("nodeagent", **pod)
        | WITHOUT_KUBELET
        | {
            entry["name"]: entry["value"].replace("$(NODEAGENT_NODE)", "gpu-1")
            for entry in agent_variables()
        }
    )
    places = {
        "NODEAGENT_FLEET": str(FLEET),
        "NODEAGENT_SERVERS": world.bus.url,
        "NODEAGENT_BUS_CA_FILE": "",
        "NODEAGENT_BUS_PASSWORD_FILE": str(token),
        "NODEAGENT_HEALTH_ADDRESS": "",
        "NODEAGENT_HEARTBEAT_S": "0.2",
    }
    agent = Process("nodeagent", tmp_path / "agent.log", **(given | places))
    heartbeat = HEARTBEATS.subject(CLUSTER, "gpu-1")
    before = world.bus.log().count("Permissions Violation")
    async with world.connected("solver") as bus, running(agent):

        async def has_announced() -> bool:
            return await bus.last("HB", heartbeat) is not None

        await eventually(has_announced, "the agent is alive")
        first = agent.log().count("bus.connected")
        await eventually(
            lambda: agent.log().count("bus.connected") > first, "it was renewed"
        )
        inventory = INVENTORIES.subject(CLUSTER, "gpu-1")
        assert await bus.last("INV", inventory) is not None
    assert world.bus.log().count("Permissions Violation") == before


# --- who is refused -------------------------------------------------------------------


def _changed(token: str, **claims: object) -> str:
    """Change claims of a token, which breaks its signature."""
    head, body, signature = token.split(".")
    found = json.loads(base64.urlsafe_b64decode(body + "==="))
    text = json.dumps({**found, **claims}).encode()
    return f"{head}.{base64.urlsafe_b64encode(text).decode().rstrip('=')}.{signature}"


async def test_who_is_not_who_it_says_is_refused_with_a_reason(world: World) -> None:
    """And afterwards the callouts answer as before."""
    unbound = token_of(world.kubectl, f"{SYSTEM}/nodeagent")
    agent, platform = world.agent("gpu-1"), world.platform()
    stranger = world.platform("team-b/stranger")
    strange = "platform system:serviceaccount:team-b:stranger"
    elsewhere = token_of(world.kubectl, "team-a/submitter", audience="other.example")
    hostile = [
        ("nodeagent gpu-2", agent, "is of a pod on node gpu-1, not on gpu-2"),
        (AGENT_1, unbound, "is bound to no pod on a node"),
        (AGENT_1, platform, f"{ACCOUNT} is not a nodeagent"),
        (f"platform {EVERYWHERE}", platform, f"is of {ACCOUNT}, not of {EVERYWHERE}"),
        (f"{PLATFORM} team-b", platform, "may do nothing with gangs.moorings.dev in"),
        (f"{PLATFORM} *", platform, "in all namespaces"),
        (strange, stranger, "in namespace team-b"),
        (PLATFORM, elsewhere, "is not for the audience nats.moorings.dev"),
        (PLATFORM, _changed(platform, sub="x"), "token: "),
        (PLATFORM, _changed(platform, exp=1), "has expired"),
        (PLATFORM, "a.b.c", "is not a JSON web token"),
        ("solver", platform, ""),
        ("admin", platform, "'admin'"),
    ]
    reasons = await asyncio.gather(*(world.refused(u, t) for u, t, _ in hostile))
    said = "".join(reasons)
    for _, _, reason in hostile:
        assert reason in said
    async with world.connected(PLATFORM, platform) as bus:
        assert await _send(bus, COMMANDS.subject(CLUSTER, "team-a", "after"))


@pytest.mark.parametrize("user", VOUCHED)
async def test_no_password_is_worth_a_token(world: World, user: str) -> None:
    """Those of `nats-passwords` are the services' and the viewer's alone."""
    async with Bus.open(world.bus.settings(user)) as bus:
        with pytest.raises(BusUnavailableError, match="Authorization Violation"):
            await bus.wait_connected(NEVER_S)


async def test_names_are_no_wildcards(world: World) -> None:
    """Neither as a node, nor as a namespace, nor as a username."""
    agent, platform = world.agent("gpu-1"), world.platform()
    hostile = [("nodeagent *", agent), ("nodeagent >", agent)]
    hostile += [(f"{PLATFORM} {names}", platform) for names in ("team-a.>", "> team-a")]
    await asyncio.gather(*(world.refused(user, token) for user, token in hostile))


# --- who comes in crowds --------------------------------------------------------------


class JunkClient:
    """One that shows tokens that nobody signed, each another, as fast as it can."""

    def __init__(self, port: int, number: int, like: str) -> None:
        self._port = port
        self._number = number
        self._like = like
        self.tries = 0

    async def run(self) -> None:
        """Try for ever; the server ends each try."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._try()
            await asyncio.sleep(0)

    async def _try(self) -> None:
        self.tries += 1
        token = _changed(self._like, jti=f"{self._number}-{self.tries}")
        options = {"user": AGENT_1, "pass": token, "verbose": False}
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await reader.readline()  # INFO
            writer.write(b"CONNECT %b\r\nPING\r\n" % json.dumps(options).encode())
            await writer.drain()
            while await reader.readline():
                pass
        finally:
            writer.close()


async def test_junk_tokens_keep_no_honest_agent_out(world: World) -> None:
    """However many come, each with another token: who is honest is let in soon."""
    tokens = [world.agent("gpu-1") for _ in range(HONEST)]
    junk = [JunkClient(world.bus.port, n, tokens[0]) for n in range(JUNK)]
    tasks = [asyncio.create_task(client.run()) for client in junk]
    try:
        while not all(client.tries > 1 for client in junk):  # noqa: ASYNC110 # no event says so
            await asyncio.sleep(0.05)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        async with AsyncExitStack() as stack:
            settings = [world.bus.settings(AGENT_1, token) for token in tokens]
            opened = map(stack.enter_async_context, map(Bus.open, settings))
            buses = await asyncio.gather(*opened)
            await asyncio.gather(*(bus.wait_connected(START_S) for bus in buses))
            took_s = loop.time() - began_s
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    tries = sum(client.tries for client in junk)
    print(f"{tries} tries of {JUNK} with junk; {HONEST} in within {took_s:.1f} s")  # noqa: T201 # for reports
    assert took_s < LET_IN_S


# --- what may go away -----------------------------------------------------------------


async def test_nothing_is_lost_while_users_expire(world: World) -> None:
    """Each lives two seconds; what is sent meanwhile is stored, each thing once."""
    sent = 0
    async with world.connected(AGENT_1, world.agent("gpu-1")) as bus:
        first, loop = bus.connection, asyncio.get_running_loop()
        until_s = loop.time() + START_S
        while bus.connection < first + 2 and loop.time() < until_s:
            subject = INVENTORIES.subject(CLUSTER, "gpu-1")
            sequence = await _send(bus, subject, str(sent).encode())
            found = await bus.last("INV", subject)
            assert found is not None
            assert (found.sequence, found.data) == (sequence, str(sent).encode())
            sent += 1
        assert bus.connection >= first + 2
    assert sent


async def test_callouts_may_go_and_come_back(world: World) -> None:
    """One does the work of both; without any who connects waits, and who is stays."""
    one, two = world.callouts
    one.kill()
    async with world.connected(PLATFORM, world.platform()) as bus:
        two.kill()
        # What was granted holds; nobody new is let in.
        assert await _send(bus, COMMANDS.subject(CLUSTER, "team-a", "away"))
        settings = world.bus.settings(AGENT_1, world.agent("gpu-1"))
        async with Bus.open(settings) as agent:
            with pytest.raises(BusUnavailableError):
                await agent.wait_connected(NEVER_S)
            one.start()
            two.start()
            await agent.wait_connected(30)
            assert await _send(agent, HEALTH.subject(CLUSTER, "gpu-1"))
        # So does the first, whose user has expired meanwhile.
        await bus.wait_connected(30)
        assert await _send(bus, COMMANDS.subject(CLUSTER, "team-a", "back"))


async def test_garbage_on_the_wire_is_refused(world: World) -> None:
    """No user, no password, both too long, other ways to show who one is."""
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"token": "x"},
        {"user": PLATFORM, "password": "x" * 3000},
        {"user": "p" * 3000, "password": "x"},
    )
    for options in ways:
        client = Client()
        with pytest.raises(Exception, match=r"nats|EOF|reset"):
            await client.connect(
                world.bus.url, allow_reconnect=False, connect_timeout=5, **options
            )
        await client.close()
    async with world.connected(PLATFORM, world.platform()):
        pass
