"""Traces continue what a message came with, and cost nothing while they are off."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from contracts.ids import GangKey, GangUID, Namespace
from runtime import tracing
from runtime.settings import ServiceConfig
from runtime.tracing import GangTraces, open_traces, trace_id_of

GANG = GangKey(Namespace("team-a"), GangUID("u"))
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Recorded:
    """Traces that keep their spans here."""

    def __init__(self) -> None:
        provider = TracerProvider()
        self.exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.traces = GangTraces(provider.get_tracer("tested"))


def test_a_span_continues_the_trace_of_its_message() -> None:
    recorded = Recorded()
    recorded.traces.follow(GANG, PARENT)
    headers = recorded.traces.record(GANG, "decide", 12.5, epoch=3)
    (span,) = recorded.exporter.get_finished_spans()
    assert trace_id_of(headers) == TRACE
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert span.start_time == 12_500_000_000
    assert dict(span.attributes or {}) == {
        "moorings.epoch": 3,
        "k8s.namespace.name": "team-a",
        "moorings.gang.uid": "u",
    }


@pytest.mark.parametrize(
    "said",
    ["", "nonsense", "00-zz-zz-01", f"00-{'0' * 32}-{'0' * 16}-01", "00-" * 10_000],
)
def test_what_is_no_context_begins_a_trace(said: str) -> None:
    """Whatever others write into a header ends nothing."""
    recorded = Recorded()
    recorded.traces.follow(GANG, said)
    headers = recorded.traces.record(GANG, "decide", 1.0)
    (span,) = recorded.exporter.get_finished_spans()
    assert span.parent is None
    assert len(trace_id_of(headers)) == 32


def test_without_a_tracer_nothing_is_kept_or_said() -> None:
    traces = GangTraces()
    traces.follow(GANG, PARENT)
    assert not traces.is_on
    assert traces.record(GANG, "decide", 1.0) == {}
    assert trace_id_of({}) == ""


def test_only_so_many_gangs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MOST_GANGS", 2)
    recorded = Recorded()
    gangs = [GangKey(Namespace("team-a"), GangUID(str(n))) for n in range(3)]
    for gang in gangs:
        recorded.traces.follow(gang, PARENT)
    ids = [trace_id_of(recorded.traces.record(gang, "x", 1.0)) for gang in gangs]
    assert ids[1:] == [TRACE, TRACE]
    assert ids[0] != TRACE


async def test_traces_are_off_until_an_endpoint_is_configured() -> None:
    async with open_traces(ServiceConfig(), "solver") as traces:
        assert not traces.is_on
