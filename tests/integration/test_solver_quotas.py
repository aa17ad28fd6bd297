"""The solver as a process, with queues of Kueue and quotas of waiting gangs."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from contracts import topics
from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace, NodeName
from contracts.messages import (
    DevicesAnnounced,
    GangAllocated,
    GangPending,
    ReleaseGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from solver.queueing.aging import AGING
from solver.service.service import AGING_S
from tests.builders import (
    DEVICE_CLASS,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.queues import cluster_queue, flavor, local_queue, observed
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


def wanted(
    number: int, count: int, namespace: str = "team-a", claim: str | None = None
) -> Gang:
    """Ask for devices before there are pods: no ResourceQuota sees that."""
    return gang(
        member(member_claim(request(count=count), claim=claim)),
        name=f"g{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
        hold=True,
    )


async def announce_devices(bus: Bus, count: int) -> None:
    content = pool(*devices(count), name="a")
    message = DevicesAnnounced(cluster=CLUSTER, node=NodeName("a"), pools=(content,))
    await announce(bus, message)
    await observe_class(bus)


async def is_allocated(bus: Bus, asked: Gang) -> bool:
    return isinstance(await decision_on(bus, asked), GangAllocated)


async def waits_for_claim(bus: Bus, asked: Gang) -> bool:
    """Whether another gang has its claim, and it was told so after that was decided."""
    decision = await decision_on(bus, asked)
    return (
        isinstance(decision, GangPending)
        and decision.reasons[0].rule is Rule.CLAIM_SHARED
        and not decision.reasons[0].facts
    )


async def is_over_quota(bus: Bus, asked: Gang) -> bool:
    decision = await decision_on(bus, asked)
    return isinstance(decision, GangPending) and decision.reasons[0].rule is Rule.QUOTA


async def release(bus: Bus, asked: Gang) -> None:
    namespace = Namespace(asked.metadata.namespace)
    uid = GangUID(asked.metadata.uid)
    message = ReleaseGang(cluster=CLUSTER, namespace=namespace, uid=uid)
    subject = topics.COMMANDS.subject(CLUSTER, namespace, uid)
    data = topics.COMMANDS.codec.encode(message)
    await bus.publish(Outgoing(subject=subject, data=data))


async def observe_queues(bus: Bus, *objects: dict[str, Any]) -> None:
    """Put queues on the bus, as the publisher does."""
    for raw in objects:
        await bus.publish(Outgoing.of(topics.STATE, observed(raw, CLUSTER)))


async def test_a_queue_holds_no_more_than_its_quota(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Others are decided beside it; what it gives back is for its next gang."""
    await announce_devices(bus, 16)
    await observe_queues(
        bus,
        flavor("any"),
        cluster_queue("a", {"any": {DEVICE_CLASS: 4}}, cohort="research"),
        local_queue("team-a", "a"),
    )
    first, second, third = wanted(1, 3), wanted(2, 2), wanted(3, 1)
    beside, largest = wanted(4, 4, "team-b"), wanted(5, 5)
    has_claim, shares = (wanted(n, 1, "team-b", claim="one") for n in (6, 7))
    process = solver(nats_server.url, tmp_path)
    for each in (first, second, third, beside, largest, has_claim, shares):
        await submit(bus, each)
    async with running(process):
        for each in (first, third, beside, has_claim):
            await eventually(
                partial(is_allocated, bus, each),
                f"{each.metadata.name} is in",
                within_s=60,
            )
        for each in (second, largest):
            await eventually(
                partial(is_over_quota, bus, each), f"{each.metadata.name} waits"
            )
        told = await decision_on(bus, largest)
        assert isinstance(told, GangPending)
        (reason,) = told.reasons
        assert reason.subject == "ClusterQueue a"
        assert reason.facts["asked"] == 5
        assert reason.facts["nominal"] == 4
        assert "borrowing is 0 because cohort research has none left" in reason.message
        await release(bus, first)
        await eventually(lambda: is_allocated(bus, second), "the next one is in")
        assert not await is_allocated(bus, largest)
        # A claim by name is one gang's, in one batch as in the next.
        await eventually(partial(waits_for_claim, bus, shares), "the claim is taken")
        await release(bus, has_claim)
        await eventually(lambda: is_allocated(bus, shares), "it has the claim")
        assert process.stop() == 0


async def test_who_waits_for_long_comes_before_the_urgent(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Where its queue says so: a step of priority a second."""
    await announce_devices(bus, 4)
    queue = cluster_queue("a", {"any": {DEVICE_CLASS: 4}})
    queue["metadata"]["annotations"] = {AGING: "1s/1000"}
    await observe_queues(bus, flavor("any"), queue, local_queue("team-a", "a"))
    holds, old = wanted(1, 4), wanted(2, 4)
    urgent = wanted(3, 4)
    urgent = structs.replace(urgent, spec=structs.replace(urgent.spec, priority=1))
    process = solver(nats_server.url, tmp_path)
    await submit(bus, holds)
    async with running(process):
        await eventually(partial(is_allocated, bus, holds), "it is in", within_s=60)
        await submit(bus, old)
        await eventually(partial(is_over_quota, bus, old), "the old one waits")
        await asyncio.sleep(AGING_S + 2.5)
        await submit(bus, urgent)
        await eventually(partial(is_over_quota, bus, urgent), "the urgent one waits")
        await release(bus, holds)
        await eventually(partial(is_allocated, bus, old), "the old one is in")
        assert not await is_allocated(bus, urgent)
        assert process.stop() == 0


async def test_so_many_gangs_of_a_namespace_are_tried(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """The next comes once one is over; who waits for that is told."""
    await announce_devices(bus, 4)
    large, small = wanted(1, 5), wanted(2, 1)
    process = solver(nats_server.url, tmp_path, SOLVER_GANG_QUOTAS="*=9, team-a=1")
    await submit(bus, large)
    await submit(bus, small)

    async def is_told() -> bool:
        decision = await decision_on(bus, small)
        return (
            isinstance(decision, GangPending)
            and decision.reasons[0].rule is Rule.GANG_QUOTA
        )

    async with running(process):
        await eventually(is_told, "the second is told", within_s=60)
        await release(bus, large)
        await eventually(lambda: is_allocated(bus, small), "it is tried")
        assert process.stop() == 0
