"""Three NATS servers that are killed, stopped and cut off from each other.

The servers of k8s/base with their certificates, users and `sync_interval: always`, two
solvers and a publisher, whose clocks are days apart. Where a file system can be
mounted, a server that is killed also loses what it had not synced. In `make soak` 1,000
faults are drawn, or as many as MOORINGS_KILLS says, by MOORINGS_SEED: runs with
different seeds add up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from contracts.fence import EpochClaimed
from contracts.streams import STREAMS
from contracts.topics import DECISIONS, FENCE, SOLVED
from moorings.bus_client import Client
from moorings.local.fleets import make_classes
from runtime.bus.bus import Bus
from runtime.errors import BusRefusedError, RestartError
from runtime.wire import Incoming
from tests.lab.clock.stepped import make_clocks
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.endurance import FLEET, Asked, is_written
from tests.lab.lossy_disk import LossyDisk, why_not
from tests.lab.nats_cluster import leader_of
from tests.lab.secured_nats import SERVERS, SecuredNats
from tests.lab.services import CLUSTER, Process, eventually, observe, running

pytestmark = pytest.mark.soak

FAULTS = ("one", "solver", "two", "stop", "all", "lose", "cut")
"""Servers killed, a solver killed, the leader of decisions stopped or cut off from the
others, a server lost with its disk."""
ROUNDS = int(os.environ.get("MOORINGS_KILLS", "1000"))
SEED = int(os.environ.get("MOORINGS_SEED", ROUNDS))
AWAY_S = (5.0, 5.0, 5.0, 9.0, 9.0, 30.0 if 2 * len(FAULTS) < ROUNDS else 9.0)
"""How long the leader is stopped or cut off; the others elect another in 4 to 9 s."""
BLOBS, BLOB_BYTES = 20, 5_000
"""Recorded at each fault, together: so many that they are one atomic batch."""
CHECKED_EVERY = 25
"""Faults between two looks at everything, so that a broken law is near its cause."""
DAYS_AHEAD = {"solver-two": 6, "publisher": 3}
"""Where there is a C compiler, the clocks of these are so far ahead."""
DECISION_TOPICS = (DECISIONS, SOLVED, FENCE)
(DEC,) = (stream for stream in STREAMS if stream.name == DECISIONS.stream)


class History:
    """All that the stream of the decisions was ever seen to hold."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[str, bytes]] = {}
        """Subject and digest by sequence: what was acknowledged, or would have been."""
        self.epochs: dict[int, EpochClaimed] = {}
        """The fence, by sequence."""
        self.alarms = 0
        """How often the stream seemed to have lost its end."""

    async def watch(self, bus: Bus, stop: asyncio.Event) -> None:
        """Note everything, over all faults, from the start again after an alarm."""
        while not stop.is_set():
            batches = bus.read_all(DECISION_TOPICS, CLUSTER, stop=stop, start="all")
            try:
                async for batch in batches:
                    assert not batch.refused
                    for incoming in batch.messages:
                        self.note(incoming)
            except RestartError:
                self.alarms += 1

    def copy(self) -> History:
        """Copy what was seen so far."""
        copied = History()
        copied.seen, copied.epochs = dict(self.seen), dict(self.epochs)
        return copied

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
                # More where one was stored while we read.
                assert len(kept) >= DEC.per_subject, f"lost {sequence}: {noted[0]}"
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

    def __init__(
        self, nats: SecuredNats, disks: Sequence[LossyDisk], solvers: Sequence[Process]
    ) -> None:
        self.draw = random.Random(SEED)
        self.lost = 0
        """Files that lost what was not synced."""
        self._nats = nats
        self._disks = disks
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
                for number in victims if self._disks else ():
                    taken = self._disks[number].lose(self.draw.getrandbits(32))
                    self.lost += taken.files
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
                await asyncio.sleep(self.draw.choice(AWAY_S))
                nats.signal(number, signal.SIGCONT)
            case _:
                nats.isolate(await leader_of(bus, DEC.name))
                await asyncio.sleep(self.draw.choice(AWAY_S))
                nats.heal()
        await asyncio.to_thread(nats.wait_healthy)


async def has_streams(bus: Bus) -> bool:
    """Make the streams; servers that have just met find no place for them."""
    with contextlib.suppress(BusRefusedError):
        await bus.ensure_streams()
        return True
    return False


def services(nats: SecuredNats, folder: Path) -> dict[str, Process]:
    """Make everything that runs beside the servers; their clocks are days apart."""
    ahead_s = {name: days * 86_400 for name, days in DAYS_AHEAD.items()}
    clocks = make_clocks(folder / "clocks", **ahead_s)

    def process(service: str, name: str, **more: str) -> Process:
        variables = nats.variables(service) | more
        if name in clocks:
            variables |= clocks[name].variables
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


class Endured:
    """What is asked of the services meanwhile, and the laws that hold of it."""

    def __init__(
        self, nats: SecuredNats, disks: Sequence[LossyDisk], folder: Path
    ) -> None:
        self.nats = nats
        self.processes = services(nats, folder)
        solvers = [self.processes[name] for name in ("solver-one", "solver-two")]
        self.trouble = Trouble(nats, disks, solvers)
        self.asked = Asked(self.trouble.draw)
        self.history = History()
        self.happened: Counter[str] = Counter()
        self._recorded: list[bytes] = []
        """Blobs of which it was said since the last check that they are stored."""
        self._folder = folder

    async def go_through(self, fault: str, bus: Bus, solver_bus: Bus) -> None:
        """Let one thing happen while gangs are submitted and ended."""
        self._note(fault)
        await self.asked.submit_some(bus)
        await self.asked.end_some(bus)
        making = asyncio.create_task(self.trouble.make(fault, solver_bus))
        recording = asyncio.create_task(self._record(solver_bus, making))
        await self.asked.submit_some(bus)
        await making
        await recording
        self.happened[fault] += 1
        self._note(f"healthy, {self.history.alarms} alarms, {self.trouble.lost} torn")

    async def _record(self, bus: Bus, making: asyncio.Task[None]) -> None:
        """Store blobs together, again and again while something happens."""
        while not making.done():
            blobs = [os.urandom(BLOB_BYTES) for _ in range(BLOBS)]
            named = [(sha256(blob).hexdigest(), blob) for blob in blobs]
            await bus.put_new_blobs(named)
            self._recorded += blobs
            await asyncio.sleep(0.5)

    def _note(self, what: str) -> None:
        with (self._folder / "faults.log").open("a") as log:
            log.write(f"{datetime.now(UTC):%H:%M:%S} {what}\n")

    async def check(self, bus: Bus, solver_bus: Bus) -> None:
        """Let all come to rest; then every law holds."""
        await self.asked.submit_some(bus)
        client = Client(bus, CLUSTER)
        await eventually(
            lambda: self.asked.settled(client), self.asked.describe_unsettled, 120
        )
        self.asked.check()
        manifests = self._folder / "manifests"
        await eventually(
            lambda: is_written(manifests, self.asked.records), "all is on disk", 60
        )
        seen = self.history.copy()
        seen.check(await stored_history(solver_bus))
        while self._recorded:
            blob = self._recorded.pop()
            assert await solver_bus.get_blob(sha256(blob).hexdigest()) == blob
        log = await asyncio.to_thread(self.nats.log)
        # An index is written without a sync, and made again when it is torn.
        assert "corrupt" not in log.replace("corrupt state file", "")
        for process in self.processes.values():
            assert process.is_alive, process.log()[-2000:]


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Sequence[LossyDisk]]:
    """The folders of the servers where they can lose what was not synced."""
    disks = [LossyDisk(tmp_path / "nats" / f"nats-{n}") for n in range(SERVERS)]
    with contextlib.ExitStack() as mounted:
        if not why_not():
            for disk in disks:
                mounted.enter_context(disk.mounted())
        yield disks if not why_not() else ()


# Of hundreds of broken TLS connections nats-py leaves one or two to the collector.
@pytest.mark.filterwarnings(
    "ignore:.*StreamWriter.__del__:pytest.PytestUnraisableExceptionWarning"
)
async def test_nothing_acknowledged_is_lost_or_given_twice(
    nats: SecuredNats, disks: Sequence[LossyDisk], tmp_path: Path
) -> None:
    endured, stop = Endured(nats, disks, tmp_path), asyncio.Event()
    async with (
        nats.running_linked(),
        Bus.open(nats.settings("publisher")) as bus,
        Bus.open(nats.settings("solver")) as solver_bus,
        running(*endured.processes.values()),
        asyncio.TaskGroup() as tasks,
    ):
        await bus.wait_connected(10)
        await eventually(partial(has_streams, bus), "streams are there", 60)
        for item in make_classes(FLEET):
            await observe(bus, item)
        tasks.create_task(endured.history.watch(solver_bus, stop))
        for number in range(ROUNDS):
            if number and number % CHECKED_EVERY == 0:
                await endured.check(bus, solver_bus)
            draw = endured.trouble.draw
            fault = FAULTS[number] if number < len(FAULTS) else draw.choice(FAULTS)
            await endured.go_through(fault, bus, solver_bus)
        await endured.check(bus, solver_bus)
        stop.set()
    assert endured.trouble.lost or not disks
    assert set(endured.happened) == set(FAULTS)
    assert len(endured.asked.accepted) >= ROUNDS


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
