"""Whatever lies on the bus, commands that look show the rest and name what they cannot.

Nothing that somebody else wrote is a command to the terminal, or markup.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from contracts.allocation import Reason, Rule
from contracts.codec import encode
from contracts.device import ResourcePool
from contracts.ids import ClusterName, GangUID, Namespace, NodeName, SolveID
from contracts.messages import (
    DevicesAnnounced,
    GangPending,
    NodeSeen,
    ObjectObserved,
    SubmitGang,
)
from contracts.reports import WAITING, GroupReported, PodsReport
from contracts.solves import SolveOpened
from contracts.topics import (
    DECISIONS,
    HEARTBEATS,
    INVENTORIES,
    REPORTS,
    SOLVES,
    STATE,
    SUBMISSIONS,
    Topic,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests import builders
from tests.lab.command_line import moorings
from tests.lab.nats_server import LabServer

CLUSTER = ClusterName("local")
SPELL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[bold red]:smile:\nerror: forged"
"""A title, a cleared screen, colours, a turned direction, markup, and a line."""
NUMBER = "9" * 5000
Topics = tuple[Topic[Any], Any]


def inventory(node: str, **device: Any) -> DevicesAnnounced:
    """Announce one device of a node."""
    pool: ResourcePool = builders.pool(builders.device("gpu-0", **device), name=node)
    return DevicesAnnounced(cluster=CLUSTER, node=NodeName(node), pools=(pool,))


def submission(name: str, uid: str) -> SubmitGang:
    """Submit a gang of any name."""
    gang = builders.gang(name="x", uid=uid)
    raw = json.loads(encode(gang))
    raw["metadata"]["name"] = name
    message = {"cluster": CLUSTER, "uid": uid, "gang": raw, "type": "SubmitGang"}
    return SUBMISSIONS.codec.decode(json.dumps(message).encode())


UID = GangUID("00000000-0000-4000-8000-000000000001")
READABLE: tuple[Topics, ...] = (
    (INVENTORIES, inventory("node-good")),
    (HEARTBEATS, NodeSeen(cluster=CLUSTER, node=NodeName("node-good"))),
    (SUBMISSIONS, submission(f"train{SPELL}", UID)),
    (
        DECISIONS,
        GangPending(
            cluster=CLUSTER,
            namespace=Namespace(builders.NAMESPACE),
            uid=UID,
            name=f"train{SPELL}",
            solve=SolveID("s"),
            attempt=0,
            epoch=1,
            reasons=(Reason(rule=Rule.TAKEN, subject=SPELL, message=SPELL),),
        ),
    ),
    (
        REPORTS,
        GroupReported(
            cluster=CLUSTER,
            namespace=Namespace("team"),
            kind="Pod",
            name=f"pod{SPELL}",
            since=SPELL,
            reports=(
                PodsReport(
                    phase=WAITING,
                    reason=SPELL,
                    message=SPELL,
                    pods=2**40,
                    names=(SPELL,),
                    gang_uid=GangUID(""),
                ),
            ),
        ),
    ),
    (
        SOLVES,
        SolveOpened(
            cluster=CLUSTER,
            solve=SolveID("abc"),
            problem=SPELL,
            version=SPELL,
            platform=SPELL,
            epoch=1,
            opened_at=SPELL,
        ),
    ),
    (STATE, ObjectObserved(cluster=CLUSTER, kind="Pod", key="team/p", object={})),
    (
        STATE,
        ObjectObserved(
            cluster=CLUSTER,
            kind="Node",
            key="n",
            object={"apiVersion": "v1", "kind": "Node", "metadata": 7},
        ),
    ),
)
UNREADABLE = {
    f"inv.v1.{CLUSTER}.node-junk": b"junk",
    f"health.v1.{CLUSTER}.node-junk": b"{}",
    f"hb.v1.{CLUSTER}.node-junk": b"\xff",
    f"submit.v1.{CLUSTER}.team.junk": b'{"type":"SubmitGang"}',
    f"cmd.v1.{CLUSTER}.team.junk": b"[]",
    f"dec.v1.{CLUSTER}.team.junk": b'{"type":"GangExploded"}',
    f"conf.v1.{CLUSTER}.team.junk": b"7",
    f"report.v1.{CLUSTER}.team.Pod.junk": b"null",
    f"solve.v1.{CLUSTER}.junk": b'{"type":"SolveOpened","epoch":"x"}',
    f"state.v1.{CLUSTER}.Pod.junk": b"junk",
}


def hostile_inventory() -> Outgoing:
    """Announce a device whose version has more digits than Python prints."""
    message = inventory(
        "node-digits", attributes={"version": builders.Version("1.2.3")}
    )
    data = INVENTORIES.codec.encode(message).replace(b"1.2.3", f"{NUMBER}.2.3".encode())
    subject = INVENTORIES.subject(CLUSTER, "node-digits")
    return Outgoing(subject=subject, data=data, zstd=True)


EXPECTED: dict[tuple[str, ...], tuple[str, str]] = {
    ("get", "nodes"): ("node-good", "inv.v1.local.node-junk"),
    ("get", "devices"): ("node-good", "inv.v1.local.node-junk"),
    ("get", "gangs"): ("train", "submit.v1.local.team.junk"),
    ("get", "pods"): ("", "dec.v1.local.team.junk"),
    ("solves", "list"): ("abc", "solve.v1.local.junk"),
    ("explain", UID): ("train", "conf.v1.local.team.junk"),
}
"""What a command shows, and what it names as unread."""


async def fill(bus: Bus) -> None:
    """Put all of it on the bus."""
    for topic, message in READABLE:
        await bus.publish(Outgoing.of(topic, message))
    for subject, data in UNREADABLE.items():
        await bus.publish(Outgoing(subject=subject, data=data))
    await bus.publish(hostile_inventory())


async def test_commands_that_look_show_the_rest_and_name_what_they_cannot(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """With the exit code of an answer, and an answer that machines can read."""
    await fill(bus)

    async def check(form: str, *command: str) -> None:
        shown, unread = EXPECTED[command]
        answer = await asyncio.to_thread(
            moorings, *command, "-o", form, home=tmp_path, server=nats_server.url
        )
        assert answer.returncode == 0, (command, form, answer.stderr)
        assert unread in answer.stderr, (command, form, answer.stderr)
        assert shown in answer.stdout, (command, form, answer.stdout)
        if form == "json":
            json.loads(answer.stdout)
        _check_plain(answer.stderr)
        _check_plain(answer.stdout, forged=form == "table")

    tables = (check("table", *command) for command in EXPECTED)
    machines = (check("json", "get", what) for what in ("nodes", "devices", "gangs"))
    await asyncio.gather(*tables, *machines)


def _check_plain(text: str, *, forged: bool = True) -> None:
    """Hold that a terminal shows the text, and that no line of it is forged."""
    lines = text.splitlines()
    assert all(line.isprintable() for line in lines), ascii(text)
    assert not forged or not any(line.startswith("error: forged") for line in lines)
    assert "😄" not in text


async def test_whoever_watches_is_told_in_plain_words(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """What comes and cannot be read ends no watch."""
    command = ("watch", "--count", "1")
    watching = asyncio.create_task(
        asyncio.to_thread(moorings, *command, home=tmp_path, server=nats_server.url)
    )
    junk = Outgoing(subject=f"dec.v1.{CLUSTER}.team.junk", data=b"junk")
    pending = next(message for topic, message in READABLE if topic is DECISIONS)
    while not watching.done():
        await bus.publish(junk)
        await bus.publish(Outgoing.of(DECISIONS, pending))
        await asyncio.sleep(0.2)
    answer = await watching
    assert answer.returncode == 0, answer.stderr
    assert "GangPending" in answer.stdout
    _check_plain(answer.stdout)


async def test_nothing_is_left_out_in_silence(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Hundreds are counted, a few are named."""
    for number in range(40):
        subject = f"inv.v1.{CLUSTER}.junk-{number}"
        await bus.publish(Outgoing(subject=subject, data=b"junk"))
    await bus.publish(Outgoing.of(INVENTORIES, inventory("node-good")))
    answer = await asyncio.to_thread(
        moorings, "get", "nodes", home=tmp_path, server=nats_server.url
    )
    assert answer.returncode == 0
    assert "30 more messages" in answer.stderr
