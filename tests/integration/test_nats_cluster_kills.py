"""Three NATS servers that are killed, stopped and cut off from each other.

The servers of k8s/base with their certificates, users and `sync_interval: always`, two
solvers and a publisher. One fault of each kind in `make test`; 1,000 drawn ones in
`make soak`, or as many as MOORINGS_KILLS says.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.fence import EpochClaimed
from contracts.streams import STREAMS
from contracts.topics import DECISIONS, FENCE, SOLVED
from moorings.client import Client
from moorings.local.fleets import make_classes
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.wire import Incoming
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.endurance import FLEET, Asked, is_written
from tests.lab.secured_nats import SERVERS, SecuredNats
from tests.lab.services import CLUSTER, Process, eventually, observe, running

SOAK = bool(os.environ.get("MOORINGS_SOAK"))
FAULTS = ("one", "solver", "two", "stop", "all", "lose", "cut")
"""Servers killed, a solver killed, the leader of decisions stopped or cut off from the
others, a server lost with its disk."""
ROUNDS = int(os.environ.get("MOORINGS_KILLS", 1_000 if SOAK else len(FAULTS)))
AWAY_S = 30.0 if SOAK else 5.0
"""How long the leader is stopped or cut off; the others elect another in 4 to 9 s."""
DECISION_TOPICS = (DECISIONS, SOLVED, FENCE)
(DEC,) = (stream for stream in STREAMS if stream.name == DECISIONS.stream)


class History:
    """All that the stream of the decisions was ever seen to hold."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[str, bytes]] = {}
        """Subject and digest by sequence: what was acknowledged, or would have been."""
        self.epochs: dict[int, EpochClaimed] = {}
        """The fence, by sequence."""

    async def watch(self, bus: Bus, stop: asyncio.Event) -> None:
        """Note everything, over all faults; ends with RestartError if it was lost."""
        batches = bus.read_all(DECISION_TOPICS, CLUSTER, stop=stop, start="all")
        async for batch in batches:
            assert not batch.refused
            for incoming in batch.messages:
                self.note(incoming)

    def note(self, incoming: Incoming[Any]) -> None:
        """Note a message; in one place there is never another."""
        noted = (incoming.subject, sha256(incoming.data).digest())
        assert self.seen.setdefault(incoming.sequence, noted) == noted
        if isinstance(incoming.message, EpochClaimed):
            self.epochs[incoming.sequence] = incoming.message

    def check(self, stored: History) -> None:
        """Everything is there still, but for what newer messages replaced."""
        newest: dict[str, list[int]] = {}
        for sequence, (subject, _) in sorted(stored.seen.items()):
            newest.setdefault(subject, []).append(sequence)
        for sequence, noted in self.seen.items():
            if sequence not in stored.seen:
                kept = newest.get(noted[0], [])
                assert len(kept) == DEC.per_subject, f"lost {sequence}: {noted[0]}"
                assert kept[0] > sequence, f"lost {sequence}: {noted[0]}"
            else:
                assert stored.seen[sequence] == noted
        claims = [claim for _, claim in sorted((self.epochs | stored.epochs).items())]
        epochs = [claim.epoch for claim in claims]
        assert epochs == sorted(epochs)
        holders = {(claim.epoch, claim.holder) for claim in claims}
        assert len(holders) == len({epoch for epoch, _ in holders}), holders


class Trouble:
    """What goes wrong, and is put right again."""

    def __init__(self, nats: SecuredNats, solvers: list[Process], seed: int) -> None:
        self.draw = random.Random(seed)
        self._nats = nats
        self._solvers = solvers

    async def make(self, fault: str, bus: Bus) -> None:
        """Let one thing happen, wait a moment, and bring everything back."""
        nats = self._nats
        match fault:
            case "one" | "two" | "all":
                count = {"one": 1, "two": 2, "all": SERVERS}[fault]
                victims = self.draw.sample(range(SERVERS), count)
                for number in victims:
                    nats.kill(number)
                await asyncio.sleep(self.draw.random())
                for number in victims:
                    nats.start(number)
            case "solver":
                victim = self.draw.choice(self._solvers)
                victim.kill()
                await asyncio.sleep(self.draw.random())
                victim.start()
            case "lose":
                number = self.draw.randrange(SERVERS)
                nats.lose(number)
                nats.start(number)
            case "stop":
                number = await leader_of(bus, DEC.name)
                nats.signal(number, signal.SIGSTOP)
                await asyncio.sleep(AWAY_S)
                nats.signal(number, signal.SIGCONT)
            case _:
                nats.isolate(await leader_of(bus, DEC.name))
                await asyncio.sleep(AWAY_S)
                nats.heal()
        await asyncio.to_thread(nats.wait_healthy)


async def leader_of(bus: Bus, stream: str) -> int:
    """Ask who leads a stream, as the number of the server."""
    while True:
        with contextlib.suppress(BusUnavailableError):
            answer = await bus._connection.request(f"$JS.API.STREAM.INFO.{stream}")
            cluster = msgspec.json.decode(answer.data).get("cluster", {})
            if leader := cluster.get("leader"):
                return int(leader.removeprefix("nats-"))
        await asyncio.sleep(0.1)


def services(nats: SecuredNats, folder: Path) -> dict[str, Process]:
    """Make everything that runs beside the servers."""

    def process(service: str, name: str, **more: str) -> Process:
        variables = nats.variables(service) | more
        return Process(service, folder / f"{name}.log", **variables)

    solvers = {
        name: process(
            "solver",
            name,
            SOLVER_NAME=name,
            SOLVER_LEASE_S="2",
            SOLVER_REPLICAS=str(SERVERS),
        )
        for name in ("solver-one", "solver-two")
    }
    folder_of_manifests = str(folder / "manifests")
    publisher = process(
        "publisher",
        "publisher",
        PUBLISHER_FOLDER=folder_of_manifests,
        PUBLISHER_REPLICAS=str(SERVERS),
    )
    agent = process(
        "nodeagent",
        "agent",
        NODEAGENT_FLEET=str(FLEET),
        NODEAGENT_CREATE_STREAMS="false",
    )
    return {**solvers, "publisher": publisher, "agent": agent}


@pytest.fixture
def nats(tmp_path: Path) -> SecuredNats:
    """The three servers, with links that can be cut."""
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")
    return SecuredNats(tmp_path / "nats", links=True)


async def test_nothing_acknowledged_is_lost_or_given_twice(
    nats: SecuredNats, tmp_path: Path
) -> None:
    processes = services(nats, tmp_path)
    solvers = [processes[name] for name in ("solver-one", "solver-two")]
    trouble = Trouble(nats, solvers, seed=ROUNDS)
    asked = Asked(trouble.draw)
    history, stop = History(), asyncio.Event()
    happened: Counter[str] = Counter()
    async with (
        nats.running_linked(),
        Bus.open(nats.settings("publisher")) as bus,
        Bus.open(nats.settings("solver")) as solver_bus,
        running(*processes.values()),
        asyncio.TaskGroup() as tasks,
    ):
        await bus.wait_connected(10)
        await bus.ensure_streams()
        for item in make_classes(FLEET):
            await observe(bus, item)
        tasks.create_task(history.watch(solver_bus, stop))
        for number in range(ROUNDS):
            await asked.submit_some(bus)
            await asked.end_some(bus)
            if number < len(FAULTS):
                fault = FAULTS[number]
            else:
                fault = trouble.draw.choice(FAULTS)
            making = tasks.create_task(trouble.make(fault, solver_bus))
            await asked.submit_some(bus)
            await making
            happened[fault] += 1
        await asked.submit_some(bus)
        client = Client(bus, CLUSTER)
        await eventually(lambda: asked.settled(client), "all is settled", 120)
        records = await client.fetch_gangs()
        asked.check(records)
        manifests = tmp_path / "manifests"
        await eventually(lambda: is_written(manifests, records), "all is on disk", 60)
        stop.set()
        history.check(await stored_history(solver_bus))
        assert "corrupt" not in await asyncio.to_thread(nats.log)
        for process in processes.values():
            assert process.is_alive, process.log()[-2000:]
    assert set(happened) == set(FAULTS)
    assert len(asked.accepted) >= ROUNDS


async def stored_history(bus: Bus) -> History:
    """Read all that the stream of the decisions holds now."""
    found, done = History(), asyncio.Event()
    batches = bus.read_all(DECISION_TOPICS, CLUSTER, stop=done, start="all")
    async for batch in batches:
        for incoming in batch.messages:
            found.note(incoming)
        if batch.caught_up:
            done.set()
    return found
