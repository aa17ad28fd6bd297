"""Only the solver that leads counts what the whole cluster does."""

from __future__ import annotations

from typing import Any, cast

from prometheus_client import REGISTRY

from contracts.topics import SUBMISSIONS
from runtime.bus.bus import Bus
from runtime.tracing import GangTraces
from runtime.wire import Incoming
from solver.cel.evaluator import SelectorEvaluator
from solver.queueing.gang_queue import GangQueue
from solver.service.lead import Leadership
from solver.service.telemetry import Telemetry
from tests.builders import gang
from tests.builders.decisions import CLUSTER, submission
from tests.builders.problems import snapshot_of

LEADER = 1


def added() -> float:
    return REGISTRY.get_sample_value("workqueue_adds_total", {"name": "gangs"}) or 0.0


def depth() -> float | None:
    return REGISTRY.get_sample_value("workqueue_depth", {"name": "gangs"})


def make(epoch: int) -> Telemetry:
    bus = cast("Bus", None)
    leadership = Leadership(bus, CLUSTER, "one", 1.0)
    leadership.epoch = epoch
    evaluator = cast("SelectorEvaluator", None)
    return Telemetry(bus, evaluator, leadership, GangTraces(), census_s=1.0)


def submitted() -> Incoming[Any]:
    message = submission()
    return Incoming(
        topic=SUBMISSIONS,
        names=message.address,
        message=message,
        data=b"",
        sequence=1,
        time_s=1.0,
    )


def test_who_stands_by_adds_nothing_to_the_queue() -> None:
    before = added()
    make(epoch=0).note(submitted(), is_news=True)
    assert added() == before
    make(epoch=LEADER).note(submitted(), is_news=True)
    assert added() == before + 1


def test_what_was_said_before_the_start_is_not_counted() -> None:
    before = added()
    make(epoch=LEADER).note(submitted(), is_news=False)
    assert added() == before


def test_the_line_is_that_of_who_leads() -> None:
    queue = GangQueue()
    for record in snapshot_of({}, [gang()]).waiting.values():
        queue.follow(record)
    for epoch, waiting in ((LEADER, 1), (0, 0)):
        make(epoch).follow_queue(queue)
        assert depth() == waiting
