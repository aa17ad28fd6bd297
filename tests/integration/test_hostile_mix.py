"""Hostile messages of every kind, one after the other, beside a solver that decides.

Each kind alone is drawn in tests/property. Here what they leave behind adds up: gangs
are decided all the while, and the commands that look answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from contracts import messages, topics
from contracts.avoidance import NodesAvoided
from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import ResourceSlice
from contracts.drift import DriftFound
from contracts.fence import MAX_LEASE_S, EpochClaimed
from contracts.gang import Gang
from contracts.liveness import PublisherLeads
from contracts.reports import GroupReported
from contracts.solves import SolveOpened
from contracts.topics import Topic
from contracts.workload import Pod
from runtime.bus.bus import Bus
from runtime.errors import PublishRefusedError
from runtime.wire import Outgoing
from tests.draw import hostile
from tests.lab.command_line import moorings
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    decision_on,
    eventually,
    running,
    solver,
    submit,
)
from tests.lab.two_nodes import two_nodes, wanted

KINDS: dict[Topic[Any], Any] = {
    topics.INVENTORIES: messages.InventoryMessage,
    topics.HEALTH: messages.HealthMessage,
    topics.DRIFT: DriftFound,
    topics.HEARTBEATS: messages.NodeSeen,
    topics.SUBMISSIONS: messages.SubmissionMessage,
    topics.COMMANDS: messages.CommandMessage,
    topics.DECISIONS: messages.DecisionMessage,
    topics.FENCE: EpochClaimed,
    topics.CONFIRMATIONS: messages.ConfirmationMessage,
    topics.REPORTS: GroupReported,
    topics.AVOIDANCES: NodesAvoided,
    topics.LEADERS: PublisherLeads,
    topics.SOLVES: SolveOpened,
}
OBJECTS = {
    Pod: "v1",
    ResourceSlice: "resource.k8s.io/v1",
    ResourceClaim: "resource.k8s.io/v1",
    ResourceClaimTemplate: "resource.k8s.io/v1",
    DeviceClass: "resource.k8s.io/v1",
}
NAMESPACED = (Pod, ResourceClaim, ResourceClaimTemplate)
OF_EACH = 13
DECIDED_S, SHOWN_S = 20.0, 25.0
LOOKS = (
    ("get", "nodes"),
    ("get", "devices"),
    ("get", "gangs"),
    ("get", "pods"),
    ("solves", "list"),
)


def draw(strategy: SearchStrategy[Any], number: int) -> Any:
    """Draw something that is the same each time."""
    drawn: list[Any] = []

    @seed(number)
    @settings(
        max_examples=8,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(said: Any) -> None:
        drawn.append(said)

    collect()
    return drawn[-1]


def draw_messages() -> Iterator[Outgoing]:
    """Draw messages of each kind, all about others than those who are innocent."""
    for number in range(OF_EACH):
        named = {
            "cluster": CLUSTER,
            "namespace": "evil",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "node": f"bad-{number}",
            "name": f"bad-{number}",
            "id": f"bad-{number}",
            "kind": "Gang",
        }
        for topic, kind in KINDS.items():
            address = {name: named[name] for name in topic.names if name != "kind"}
            if "id" in address:
                address["solve"] = address.pop("id")
            body = draw(hostile.bodies(kind, **address), number)
            if "kind" in topic.names:
                body["kind"] = named["kind"]
            names = tuple(named[name] for name in topic.names)
            yield _outgoing(topic, names, body)
        for kind, version in OBJECTS.items():
            name = named["name"]
            key = f"evil/{name}" if kind in NAMESPACED else name
            body = {
                "type": "ObjectObserved",
                "cluster": CLUSTER,
                "kind": kind.__name__,
                "key": key,
                "object": draw(hostile.objects(kind, name, version), number),
            }
            yield _outgoing(topics.STATE, (CLUSTER, kind.__name__, key), body)


def _outgoing(topic: Topic[Any], names: tuple[str, ...], body: Any) -> Outgoing:
    data = json.dumps(body).encode()
    return Outgoing(subject=topic.subject(*names), data=data, zstd=topic.zstd)


async def is_decided_soon(bus: Bus, gang: Gang) -> None:
    """Submit a gang, and hold that it is decided."""

    async def is_decided() -> bool:
        return await decision_on(bus, gang) is not None

    await submit(bus, gang)
    await eventually(is_decided, f"{gang.metadata.name} is decided", DECIDED_S)


async def test_hostile_messages_of_every_kind_stop_neither_decisions_nor_looks(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    lasting = EpochClaimed(cluster=CLUSTER, epoch=7, holder="x", lease_s=MAX_LEASE_S)
    said = list(draw_messages())
    Random(1).shuffle(said)
    assert len(said) >= 225
    await two_nodes(bus)
    async with running(solver(nats_server.url, tmp_path)):
        await is_decided_soon(bus, wanted(100))
        for number, message in enumerate(said):
            with suppress(PublishRefusedError):  # too long for its stream
                await bus.publish(message)
            if number % 75 == 74:
                await is_decided_soon(bus, wanted(101 + number))
        await bus.publish(Outgoing.of(topics.FENCE, lasting))
        await is_decided_soon(bus, wanted(1000))
        for command in LOOKS:
            began = time.monotonic()
            answer = await asyncio.to_thread(
                moorings, *command, home=tmp_path, server=nats_server.url
            )
            assert answer.returncode == 0, (command, answer.stderr)
            assert time.monotonic() - began < SHOWN_S
    # Nor does any of it end a start.
    async with running(solver(nats_server.url, tmp_path, "two")):
        await is_decided_soon(bus, wanted(1001))
