"""Who floods JetStream's API leaves others a server that answers again soon.

nats-server works off the requests of all accounts in one queue, and each of these takes
it tens of milliseconds: with the default of 10,000 it answered nobody for minutes.
"""

from __future__ import annotations

import time

from nats.aio.client import Client

from contracts import topics
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.lab.nats_server import LabServer

SUBJECTS = 20_000
REQUESTS = 5_000
AGAIN_S = 30.0


async def test_a_flood_of_costly_requests_does_not_last(
    bus: Bus, nats_server: LabServer
) -> None:
    """Each asks for all subjects of a stream."""
    stored = (
        Outgoing(subject=topics.COMMANDS.subject("local", "team", f"{n}"), data=b"{}")
        for n in range(SUBJECTS)
    )
    await bus.publish_many([*stored])
    flooding = Client()
    await flooding.connect([nats_server.url])
    for _ in range(REQUESTS):
        subject, reply = "$JS.API.STREAM.INFO.CMD", "_INBOX.nobody"
        await flooding.publish(subject, b'{"subjects_filter":">"}', reply)
    await flooding.flush()
    began_s = time.monotonic()
    assert (await bus.usage("CMD")).subjects == SUBJECTS
    assert time.monotonic() - began_s < AGAIN_S
    await flooding.close()
