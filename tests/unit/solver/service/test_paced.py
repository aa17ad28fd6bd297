"""The last word of a node that was passed over is read, told, and tried again."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from contracts import topics
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from contracts.topics import Topic
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.refusals import Refusals
from runtime.wire import Incoming, TopicBatch
from solver.service import paced
from solver.service.pace import BURST
from solver.service.paced import PacedReader
from tests.builders.problems import CLUSTER

NODE = NodeName("a")
SUBJECT = topics.INVENTORIES.subject(CLUSTER, NODE)
LAST = Incoming(
    topic=topics.INVENTORIES,
    names=(CLUSTER, NODE),
    message=DevicesAnnounced(cluster=CLUSTER, node=NODE),
    data=b"",
    sequence=7,
)


class LastBus:
    """Answers with the last message of the node, after some failures."""

    def __init__(self, failures: int, last: Incoming[Any] | None) -> None:
        self._failures = failures
        self._last = last

    async def read_last(self, topic: Topic[Any], *names: str) -> Incoming[Any] | None:
        """Answer, or fail."""
        assert (topic, names) == (topics.INVENTORIES, (CLUSTER, NODE))
        self._failures -= 1
        if self._failures >= 0:
            raise BusUnavailableError("read", "away")
        return self._last


@pytest.mark.parametrize("failures", [0, 2])
async def test_the_last_message_is_read_and_told(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """After failures, too; what was passed over is logged once."""
    monkeypatch.setattr(paced, "EVERY_S", 0.01)
    now_s = 100.0

    def tick() -> float:
        nonlocal now_s
        now_s += 0.2
        return now_s

    monkeypatch.setattr(paced, "monotonic", tick)
    taken: list[tuple[Topic[Any], tuple[Incoming[Any], ...]]] = []
    stop = asyncio.Event()

    def take(topic: Topic[Any], batch: TopicBatch[Any]) -> None:
        taken.append((topic, batch.messages))
        stop.set()

    reader = PacedReader(cast("Bus", LastBus(failures, LAST)), Refusals(), take)
    passed = [reader.skips(SUBJECT) for _ in range(2 * BURST)]
    assert passed[0] is False
    assert passed[-1] is True
    with capture_logs() as logs:
        async with asyncio.timeout(30):
            await reader.run(stop)
    assert taken == [(topics.INVENTORIES, (LAST,))]
    told = [line for line in logs if line["event"] == "messages.passed_over"]
    assert [(line["subject"], line["count"]) for line in told] == [
        (SUBJECT, sum(passed))
    ]
    delayed = [line for line in logs if line["event"] == "message.delayed"]
    assert len(delayed) == failures
