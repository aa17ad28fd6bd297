"""/readyz says yes once a service has read what it must know, and no sooner.

Each service starts on a bus that holds so much that reading takes a while, and is asked
all the time. What it had read, or said, when it first said yes is looked up afterwards.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from contracts import topics
from contracts.ids import GangUID, NodeName
from contracts.messages import DevicesAnnounced, SubmitGang
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.lab.cluster import publisher
from tests.lab.controlplane.server import ControlPlane
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    Process,
    announce,
    eventually,
    is_ready,
    running,
    solver,
)

MANY = 2_000
WITHIN_S = 120.0
FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
nodes:
- shape: n
  count: 500
  devices: [{driver: gpu.example.com, count: 4, name: "g-{index}"}]
"""


@pytest.fixture
def address() -> str:
    """Where a service is asked."""
    return f"127.0.0.1:{find_free_port()}"


@pytest.fixture
async def full(bus: Bus) -> Bus:
    """A bus with a node, and many gangs that wait."""
    node = pool(*devices(4), name="a")
    await announce(
        bus, DevicesAnnounced(cluster=CLUSTER, node=NodeName("a"), pools=(node,))
    )
    await bus.publish_many([_submission(number) for number in range(MANY)])
    return bus


def _submission(number: int) -> Outgoing:
    asked = gang(
        member(member_claim(request(count=1))),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )
    uid = GangUID(asked.metadata.uid)
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=asked)
    return Outgoing.of(topics.SUBMISSIONS, message)


@asynccontextmanager
async def first_ready(process: Process, address: str) -> AsyncIterator[str]:
    """Run a service; gives its log as it was when it first said that it is ready."""
    async with running(process):
        await eventually(lambda: is_ready(address), "it is ready", WITHIN_S)
        yield process.log()
        process.stop()
        assert not await is_ready(address)


def read_in(log: str) -> set[str]:
    """Name the streams that were read to where they stood at the start."""
    return set(re.findall(r'"stream": "(\w+)".*"event": "stream\.synced"', log))


GANGS = {topic.stream for topic in topics.GANG_TOPICS}
NODES = {"INV", "HEALTH"}


async def test_a_solver_is_ready_once_it_has_read_all(
    full: Bus, nats_server: LabServer, tmp_path: Path, address: str
) -> None:
    """Also one that does not lead; until there is a bus it is not."""
    process = solver(nats_server.url, tmp_path, SOLVER_HEALTH_ADDRESS=address)
    assert not await is_ready(address)
    async with first_ready(process, address) as log:
        assert read_in(log) == {*GANGS, *NODES, "HB", "STATE"}
    last = await full.usage("SUBMIT")
    assert last.subjects == MANY


async def test_a_publisher_without_a_cluster_is_ready_once_it_has_read_all(
    full: Bus, nats_server: LabServer, tmp_path: Path, address: str
) -> None:
    """What was decided and what is announced; confirmations are read first."""
    assert full.connected
    process = Process(
        "publisher",
        tmp_path / "publisher.log",
        PUBLISHER_SERVERS=nats_server.url,
        PUBLISHER_FOLDER=str(tmp_path / "manifests"),
        PUBLISHER_HEALTH_ADDRESS=address,
    )
    async with first_ready(process, address) as log:
        assert read_in(log) == {"DEC", *NODES}


async def test_a_publisher_beside_a_cluster_is_ready_once_it_has_read_all(
    full: Bus,
    nats_server: LabServer,
    control_plane: ControlPlane,
    tmp_path: Path,
    address: str,
) -> None:
    """Also one that does not lead: another may end then."""
    assert full.connected
    variables = {"PUBLISHER_HEALTH_ADDRESS": address}
    process = publisher(nats_server.url, control_plane, tmp_path, **variables)
    async with first_ready(process, address) as log:
        assert read_in(log) >= GANGS


async def test_a_node_agent_is_ready_once_it_has_announced(
    bus: Bus, nats_server: LabServer, tmp_path: Path, address: str
) -> None:
    """All of its nodes, devices and health."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    process = Process(
        "nodeagent",
        tmp_path / "agent.log",
        NODEAGENT_SERVERS=nats_server.url,
        NODEAGENT_FLEET=str(tmp_path / "fleet.yaml"),
        NODEAGENT_HEALTH_ADDRESS=address,
    )
    async with running(process):
        await eventually(lambda: is_ready(address), "it is ready", WITHIN_S)
        said = [(await bus.usage(stream)).subjects for stream in sorted(NODES)]
        assert said == [500, 500]
