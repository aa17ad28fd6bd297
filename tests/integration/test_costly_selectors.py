"""Selectors that cost much, beside gangs that ask for nothing special."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from contracts import topics
from contracts.allocation import Rule
from contracts.claim import DeviceRequest
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace, NodeName
from contracts.messages import DevicesAnnounced, GangAllocated, GangPending
from runtime.bus.bus import Bus
from tests.builders import DRIVER, device, gang, member, member_claim, pool, request
from tests.cases.selectors import costly_selector
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    announce,
    decision_on,
    eventually,
    observe_class,
    running,
    solver,
    submit,
)

NODES, DEVICES = 16, 64


async def announce_fleet(bus: Bus) -> None:
    """Announce devices whose uuids all differ."""
    for n in range(NODES):
        node = f"n{n}"
        found = [
            device(f"gpu-{d}", attributes={"uuid": f"{node}-{d}"})
            for d in range(DEVICES)
        ]
        await announce(
            bus,
            DevicesAnnounced(
                cluster=CLUSTER, node=NodeName(node), pools=(pool(*found, name=node),)
            ),
        )
    await observe_class(bus)


def asking(number: int, namespace: str, asked: DeviceRequest) -> Gang:
    return gang(
        member(member_claim(asked)),
        name=f"g{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


async def test_plain_gangs_are_decided_beside_costly_ones_that_are_told_why(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """1,024 looks of 0.05 s each would take a minute; nobody else waits for them."""
    await announce_fleet(bus)
    costly = [
        asking(
            n, "mallory", request(select=[f"{costly_selector(DRIVER)} && {n} == {n}"])
        )
        for n in range(2)
    ]
    one_uuid = f'device.attributes["{DRIVER}"].uuid == "n3-5"'
    plain = [
        asking(10 + n, "alice", request(select=[one_uuid] if n == 0 else []))
        for n in range(5)
    ]
    for each in (plain[0], *costly, *plain[1:]):
        await submit(bus, each)
    process = solver(nats_server.url, tmp_path)
    async with running(process):

        async def plain_are_in() -> bool:
            found = [await decision_on(bus, each) for each in plain]
            return all(isinstance(decision, GangAllocated) for decision in found)

        async def all_are_told() -> bool:
            found = [await decision_on(bus, each) for each in costly]
            return all(
                isinstance(decision, GangPending)
                and decision.reasons[0].rule is Rule.SELECTOR_ERROR
                and "too expensive" in decision.reasons[0].message
                for decision in found
            )

        await eventually(plain_are_in, "plain gangs are decided", within_s=120)
        await eventually(all_are_told, "costly gangs are told why", within_s=240)
        assert process.stop() == 0
    # Who was in a batch with costly ones did not wait for them.
    allocated = {d.solve for each in plain for d in await said_of(bus, each)}
    for each in costly:
        *first, last = await said_of(bus, each)
        assert first[0].solve in allocated
        rules = {said.reasons[0].rule for said in first}
        assert rules - {Rule.QUEUED} == {Rule.UNEVALUATED}
        assert last.reasons[0].subject == "worker/gpus/gpu"
        assert last.reasons[0].message.startswith("selector #0: too expensive")


async def said_of(bus: Bus, asked: Gang) -> list[Any]:
    """Read all decisions about a gang, oldest first."""
    namespace = Namespace(asked.metadata.namespace)
    uid = GangUID(asked.metadata.uid)
    subject = topics.DECISIONS.subject(CLUSTER, namespace, uid)
    found: list[Any] = []
    async for page in bus.follow("DEC", [subject], asyncio.Event(), start="all"):
        found += [topics.DECISIONS.codec.decode(item.data) for item in page.messages]
        if page.synced:
            break
    return found
