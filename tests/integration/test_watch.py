"""Somebody who follows one gang is told of no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from msgspec.structs import replace

from contracts.ids import GangUID, Namespace
from contracts.messages import ClaimsReleased
from contracts.topics import CONFIRMATIONS, DECISIONS
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders.decisions import gang_allocated, gang_pending
from tests.lab.command_line import moorings
from tests.lab.nats_server import LabServer
from tests.lab.services import CLUSTER

WANTED = replace(
    gang_pending(), cluster=CLUSTER, namespace=Namespace("team-b"), uid=GangUID("u-1")
)
OTHERS = (
    replace(WANTED, namespace=Namespace("team-a")),
    replace(WANTED, uid=GangUID("u-2"), name="another"),
    replace(
        gang_allocated(pods=1),
        cluster=CLUSTER,
        namespace=WANTED.namespace,
        uid=WANTED.uid,
        name=WANTED.name,
    ),
)


async def test_only_what_is_asked_for_comes(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """By namespace, gang and kind; what comes first is not what is wanted."""
    command = ("watch", f"--gang=team-b/{WANTED.name}", "--kind=gangpending")
    watching = asyncio.create_task(
        asyncio.to_thread(
            moorings,
            *(*command, "--count=2", "-o", "json"),
            home=tmp_path,
            server=nats_server.url,
        )
    )
    while not watching.done():
        for message in (*OTHERS, WANTED):
            await bus.publish(Outgoing.of(DECISIONS, message))
        await asyncio.sleep(0.2)
    answer = await watching
    assert answer.returncode == 0, answer.stderr
    events = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [(e["type"], e["namespace"], e["uid"]) for e in events] == [
        ("GangPending", "team-b", "u-1")
    ] * 2


async def test_a_gang_whose_decision_cannot_be_read_is_named_by_its_uid(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """One message of nonsense ends no watch."""
    released = ClaimsReleased(
        cluster=CLUSTER, namespace=WANTED.namespace, uid=WANTED.uid
    )
    await bus.publish(Outgoing(subject=DECISIONS.subject_of(WANTED), data=b"{}"))
    watching = asyncio.create_task(
        asyncio.to_thread(
            moorings,
            *("watch", "--kind=claimsreleased", "--count=1"),
            home=tmp_path,
            server=nats_server.url,
        )
    )
    while not watching.done():
        await bus.publish(Outgoing.of(CONFIRMATIONS, released))
        await asyncio.sleep(0.2)
    answer = await watching
    assert answer.returncode == 0, answer.stderr
    assert "team-b/u-1" in answer.stdout
