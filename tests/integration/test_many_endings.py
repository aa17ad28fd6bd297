"""However many gangs end at once, the others are decided beside them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from contracts import topics
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace
from contracts.messages import CancelGang, GangAllocated, GangReleased, SubmitGang
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from solver.service.endings import MOST
from tests.lab.nats_server import LabServer
from tests.lab.services import CLUSTER, eventually, running, solver, submit
from tests.lab.two_nodes import is_decided, two_nodes, wanted

ENDED = 4 * MOST


def submitted_in_vain(asked: Gang) -> tuple[Outgoing, Outgoing]:
    """Submit a gang, and cancel it."""
    uid, namespace = GangUID(asked.metadata.uid), Namespace(asked.metadata.namespace)
    return (
        Outgoing.of(
            topics.SUBMISSIONS, SubmitGang(cluster=CLUSTER, uid=uid, gang=asked)
        ),
        Outgoing.of(
            topics.COMMANDS, CancelGang(cluster=CLUSTER, namespace=namespace, uid=uid)
        ),
    )


async def decided_at(bus: Bus, asked: Gang) -> int:
    """Return where in the stream the last decision about a gang is."""
    names = (CLUSTER, asked.metadata.namespace, asked.metadata.uid)
    last = await bus.last(topics.DECISIONS.stream, topics.DECISIONS.subject(*names))
    assert last is not None
    return last.sequence


async def test_a_gang_is_decided_before_all_ends_of_others_are_told(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Who submits and cancels all the time keeps nobody else waiting."""
    await two_nodes(bus)
    ended = [wanted(number) for number in range(1, ENDED + 1)]
    await bus.publish_many([each for gang in ended for each in submitted_in_vain(gang)])
    asked = wanted(0)
    await submit(bus, asked)
    async with running(solver(nats_server.url, tmp_path)):
        await eventually(partial(is_decided, bus, asked, GangAllocated), "it is in")
        for gang in ended:
            await eventually(partial(is_decided, bus, gang, GangReleased), "it ends")
    told = [await decided_at(bus, gang) for gang in ended]
    assert await decided_at(bus, asked) < max(told)
