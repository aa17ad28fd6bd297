"""State on a real bus: only what differs is said, and nothing is lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from contracts import topics
from contracts.codec import to_builtins
from contracts.ids import ClusterName
from contracts.messages import ObjectObserved
from contracts.names import INDEX
from publisher.cluster.opened_pods import OpenedPods
from publisher.cluster.state_publisher import StatePublisher
from publisher.errors import NotLeadingError
from publisher.gangs.records import PodGangRecord
from publisher.kube.changes import Change, ChangePage
from runtime.bus.bus import Bus
from runtime.errors import BusRefusedError
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import record_of, submission_of
from tests.builders.pods import refused_pod, waiting_pod
from tests.lab.nats_server import LabServer
from tests.lab.services import eventually

CLUSTER = ClusterName("local")


def node(name: str, version: int, cpu: str = "8") -> Change:
    raw: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "resourceVersion": str(version)},
        "status": {"allocatable": {"cpu": cpu}},
    }
    return Change("Node", name, raw, f"uid-{name}")


def page(*changes: Change) -> ChangePage:
    return ChangePage(changes, synced=True)


async def on_bus(bus: Bus, name: str) -> str | None:
    """Read which CPU the bus holds of a node; None: it is gone or never was."""
    received = await bus.last("STATE", topics.STATE.subject(CLUSTER, "Node", name))
    if received is None:
        return None
    message = topics.STATE.codec.decode(received.data)
    if not isinstance(message, ObjectObserved):
        return None
    cpu: str = message.object["status"]["allocatable"]["cpu"]
    return cpu


@asynccontextmanager
async def publishing(state: StatePublisher) -> AsyncIterator[None]:
    """Let it lead while the block runs."""
    stop = asyncio.Event()
    running = asyncio.create_task(state.publish(stop))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        stop.set()
        await running


async def test_who_begins_to_lead_says_only_what_differs(bus: Bus) -> None:
    first = StatePublisher(CLUSTER, bus)
    await first.take(page(node("a", 1), node("b", 2), node("c", 3)))
    async with publishing(first):
        await first.wait_published()
    assert first.counts["sent"] == 3
    second = StatePublisher(CLUSTER, bus)
    await second.take(page(node("a", 4), node("b", 5, cpu="16")))
    async with publishing(second):
        await second.wait_published()
    assert second.counts["sent"] == 2
    cpus = [await on_bus(bus, name) for name in ("a", "b", "c")]
    assert cpus == ["8", "16", None]


async def test_a_sequence_is_given_only_when_all_before_it_is_on_the_bus(
    bus: Bus,
) -> None:
    state = StatePublisher(CLUSTER, bus)
    async with publishing(state):
        changes = [node(f"n{number}", number + 1) for number in range(1500)]
        await state.take(page(*changes))
        sequence = await state.wait_published()
        last = await bus.last("STATE", topics.STATE.subject(CLUSTER, "Node", "n1499"))
        assert last is not None
        assert last.sequence <= sequence


async def test_who_does_not_lead_says_nothing(bus: Bus) -> None:
    state = StatePublisher(CLUSTER, bus)
    await state.take(page(node("a", 1)))
    with pytest.raises(NotLeadingError):
        await state.wait_published()
    assert await on_bus(bus, "a") is None


async def test_what_changes_while_the_bus_is_away_is_said_when_it_is_back(
    bus: Bus, nats_server: LabServer
) -> None:
    state = StatePublisher(CLUSTER, bus)
    async with publishing(state):
        await state.take(page(node("a", 1)))
        await state.wait_published()
        nats_server.kill()
        await state.take(page(node("a", 2, cpu="2"), node("b", 3)))
        await state.take(page(node("a", 4, cpu="4")))
        await asyncio.to_thread(nats_server.start)

        async def said() -> bool:
            return await on_bus(bus, "a") == "4" and await on_bus(bus, "b") == "8"

        await eventually(said, "both are said", 30)


async def test_a_pod_is_said_once_what_was_decided_for_it_is_known(bus: Bus) -> None:
    """It may be seen before the decision that opened its gate is read."""
    known: list[PodGangRecord] = []
    waiting = waiting_pod("a", gang="train", templates=["gpus"])
    notes = {INDEX: "worker/0"}
    opened = to_builtins(refused_pod("a", builders.NODE, annotations=notes))
    raw = opened | {"apiVersion": "v1", "kind": "Pod"}
    key = f"{builders.NAMESPACE}/a"
    subject = topics.STATE.subject(CLUSTER, "Pod", key)
    state = StatePublisher(
        CLUSTER, bus, OpenedPods(lambda _: known[-1] if known else None)
    )
    await state.take(page(Change("Pod", key, raw)))
    async with publishing(state):
        await state.wait_published()
        assert await bus.last("STATE", subject) is None
        known.append(record_of(submission_of((waiting,)), gang_allocated()))

        async def said() -> bool:
            return await bus.last("STATE", subject) is not None

        await eventually(said, "the pod uses its node")


async def test_a_bus_that_lost_everything_is_told_all_again(
    bus: Bus, nats_server: LabServer
) -> None:
    """Also what did not change: Kubernetes is where it is kept."""
    state = StatePublisher(CLUSTER, bus)
    async with publishing(state):
        await state.take(page(*(node(f"n{number}", 1) for number in range(20))))
        assert await state.wait_published() >= 20
        nats_server.kill()
        shutil.rmtree(nats_server.store_dir / "data")
        await asyncio.to_thread(nats_server.start)

        async def said() -> bool:
            with suppress(BusRefusedError):  # the stream is not there again yet
                return await on_bus(bus, "n19") == "8"
            return False

        await eventually(said, "it is said again", 30)
        await state.take(page(node("n0", 2, cpu="2")))
        sequence = await state.wait_published()
    last = await bus.last("STATE", topics.STATE.subject(CLUSTER, "Node", "n0"))
    assert last is not None
    assert last.sequence == sequence
