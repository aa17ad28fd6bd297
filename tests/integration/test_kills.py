"""SIGKILL to anything at any moment: nothing accepted is lost, nothing given twice.

30 kills in `make test`, 500 in `make soak` (MOORINGS_SOAK=1).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

from contracts import topics
from contracts.gang import Gang, GangPhase
from contracts.ids import DeviceID, GangUID, Namespace
from contracts.lifecycle import GangRecord
from contracts.messages import CancelGang, ReleaseGang
from moorings.client import Client
from moorings.demo.workload import make_gang
from moorings.local.fleets import find_fleet, make_classes
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.wire import BusSettings, Outgoing
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    Process,
    eventually,
    observe,
    running,
    solver,
    submit,
)

KILLS = 500 if os.environ.get("MOORINGS_SOAK") else 30
FLEET = find_fleet("small")


def children(pid: int) -> list[int]:
    """List the children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


class World:
    """Everything that runs, and what was asked of it."""

    def __init__(self, server: LabServer, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.server = server
        self.folder = folder
        self.manifests = folder / "manifests"
        url = server.url
        self.solver = solver(url, folder)
        self.publisher = Process(
            "publisher",
            folder / "publisher.log",
            PUBLISHER_SERVERS=url,
            PUBLISHER_FOLDER=str(self.manifests),
        )
        self.agent = Process(
            "nodeagent",
            folder / "agent.log",
            NODEAGENT_SERVERS=url,
            NODEAGENT_FLEET=str(FLEET),
        )
        self.accepted: list[Gang] = []
        self.ended: set[str] = set()
        self.device_class = str(make_classes(FLEET)[0].metadata.name)

    async def kill_something(self) -> str:
        """Kill one process, worker or server, and start it again."""
        victim = self.draw.choice(["solver", "worker", "publisher", "agent", "nats"])
        match victim:
            case "nats":
                await asyncio.to_thread(self.server.kill)
                await asyncio.sleep(self.draw.random() * 0.3)
                await asyncio.to_thread(self.server.start)
            case "worker":
                for pid in children(self.solver.pid)[:1]:
                    os.kill(pid, signal.SIGKILL)
            case _:
                process: Process = getattr(self, victim)
                process.kill()
                await asyncio.sleep(self.draw.random() * 0.3)
                process.start()
        return victim

    async def submit_some(self, bus: Bus) -> None:
        """Submit a few gangs; only those that were acknowledged count."""
        for _ in range(self.draw.randint(0, 3)):
            number = len(self.accepted) + 1
            gang = make_gang(
                number,
                self.draw.randint(1, 4),
                self.draw.choice([1, 1, 2, 4]),
                self.device_class,
                0,
            )
            await submit(bus, gang)
            self.accepted.append(gang)

    async def end_some(self, bus: Bus) -> None:
        """Release or cancel a gang now and then."""
        living = [g for g in self.accepted if g.metadata.uid not in self.ended]
        if len(living) < 6 or self.draw.random() < 0.3:
            return
        gang = self.draw.choice(living)
        kind = self.draw.choice([ReleaseGang, CancelGang])
        uid, namespace = (
            GangUID(gang.metadata.uid),
            Namespace(gang.metadata.namespace),
        )
        message = kind(cluster=CLUSTER, namespace=namespace, uid=uid)
        subject = topics.COMMANDS.subject(CLUSTER, namespace, uid)
        data = topics.COMMANDS.codec.encode(message)
        await bus.publish(Outgoing(subject=subject, data=data))
        self.ended.add(gang.metadata.uid)


async def test_nothing_is_lost_or_given_twice_whatever_is_killed(
    nats_server: LabServer, tmp_path: Path
) -> None:
    world = World(nats_server, tmp_path, seed=KILLS)
    settings = BusSettings(servers=(nats_server.url,), name="test")
    async with Bus.open(settings) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
        for item in make_classes(FLEET):
            await observe(bus, item)
        async with running(world.agent, world.publisher, world.solver):
            victims: Counter[str] = Counter()
            for _ in range(KILLS):
                await world.submit_some(bus)
                await world.end_some(bus)
                await asyncio.sleep(world.draw.random() * 0.5)
                victims[await world.kill_something()] += 1
                await bus.wait_connected(20)
            client = Client(bus, CLUSTER)
            await eventually(lambda: settled(world, client), "all is settled", 60)
            records = await client.fetch_gangs()
            check(world, records)
            await eventually(lambda: written(world, records), "all is on disk", 30)
    assert len(victims) >= 4
    assert len(world.accepted) >= KILLS


async def settled(world: World, client: Client) -> bool:
    """Say whether every accepted gang has come to rest."""
    try:
        records = {record.uid: record for record in await client.fetch_gangs()}
    except BusUnavailableError:
        return False
    for gang in world.accepted:
        record = records.get(GangUID(gang.metadata.uid))
        if record is None or record.decision is None:
            return False
        if record.phase is GangPhase.DECIDED or record.ending is not None:
            return False
    return True


def check(world: World, records: list[GangRecord]) -> None:
    """Every gang has one end or a reason; no device is in two allocations."""
    by_uid = {record.uid: record for record in records}
    held: Counter[DeviceID] = Counter()
    for gang in world.accepted:
        record = by_uid[GangUID(gang.metadata.uid)]
        if gang.metadata.uid in world.ended:
            assert record.phase.is_terminal, record
        elif record.phase is GangPhase.PENDING:
            assert record.reasons, record
        else:
            assert record.phase is GangPhase.WRITTEN, record
        decision = record.allocated
        for member in decision.members if decision is not None else ():
            for claim in member.claims:
                held.update(r.device_id for r in claim.allocation.devices.results)
    twice = {str(device): count for device, count in held.items() if count > 1}
    assert not twice
    assert held


async def written(world: World, records: list[GangRecord]) -> bool:
    """Say whether the folder holds the claims of the written gangs and no others."""
    wanted = {
        claim.ref.name
        for record in records
        if (decision := record.allocated) is not None
        for member in decision.members
        for claim in member.claims
    }
    found = set()
    for file in world.manifests.rglob("*.json"):
        document = json.loads(file.read_text())
        if document["kind"] == "ResourceClaim":
            found.add(document["metadata"]["name"])
    return found == wanted
