"""One trace a gang, over all services; off unless an endpoint is configured.

The context of a gang's trace travels in the header `traceparent` of what is said of it
(W3C Trace Context), so who continues it needs nothing but the message. Spans are
recorded when they are over. The one place that imports OpenTelemetry, which is an
optional extra; without it, or without an endpoint, everything here does nothing.

Source: W3C Trace Context; OpenTelemetry's OTLP over HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from contracts.ids import GangKey
from runtime.errors import ConfigError
from runtime.settings import ServiceConfig

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

TRACEPARENT = "traceparent"
MOST_GANGS = 20_000
"""So many gangs' traces are remembered, those heard of last."""
_EXPORT_S = 5.0
_NS = 1_000_000_000
_ID_TOKENS = 4


class GangTraces:
    """The traces of gangs, as far as one process has heard of them."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self._parents: OrderedDict[GangKey, tuple[str, float]] = OrderedDict()
        """Parent of each gang's next span, and since when."""

    @property
    def is_on(self) -> bool:
        """True if spans are recorded."""
        return self._tracer is not None

    def follow(self, gang: GangKey, traceparent: str) -> None:
        """Let a gang's next spans continue what a message came with, if anything."""
        if self._tracer is None or not traceparent:
            return
        self._parents[gang] = traceparent, time.time()
        self._parents.move_to_end(gang)
        while len(self._parents) > MOST_GANGS:
            self._parents.popitem(last=False)

    def since_s(self, gang: GangKey) -> float:
        """When we heard last of a gang, seconds since the epoch; else now."""
        _, since_s = self._parents.get(gang, ("", time.time()))
        return since_s

    def record(
        self, gang: GangKey, name: str, began_s: float, **facts: str | float
    ) -> dict[str, str]:
        """Record a span of a gang that ends now; return the headers to say it with.

        Without a context it begins a trace. Facts become attributes.
        """
        if self._tracer is None:
            return {}
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        carrier = TraceContextTextMapPropagator()
        parent, _ = self._parents.get(gang, ("", 0.0))
        attributes = {f"moorings.{key}": value for key, value in facts.items()}
        attributes["k8s.namespace.name"] = gang.namespace
        attributes["moorings.gang.uid"] = gang.uid
        span = self._tracer.start_span(
            name,
            context=carrier.extract({TRACEPARENT: parent}),
            start_time=int(began_s * _NS),
            attributes=attributes,
        )
        span.end()
        headers: dict[str, str] = {}
        carrier.inject(headers, context=set_span_in_context(span))
        return headers


def trace_id_of(headers: dict[str, str]) -> str:
    """Read the trace's id from the headers of a message; empty: there is none."""
    tokens = headers.get(TRACEPARENT, "").split("-")
    return tokens[1] if len(tokens) == _ID_TOKENS else ""


@asynccontextmanager
async def open_traces(config: ServiceConfig, service: str) -> AsyncIterator[GangTraces]:
    """Export spans while the block runs, if that is configured.

    Spans are sent by a thread of their own; a collector that is away costs spans, and
    nobody waits for it.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """
    if not config.traces_endpoint:
        yield GangTraces()
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        variable = f"{service.upper()}_TRACES_ENDPOINT"
        raise ConfigError(variable, "needs the extra moorings[tracing]") from error
    exporter = OTLPSpanExporter(endpoint=config.traces_endpoint, timeout=_EXPORT_S)
    resource = Resource.create(
        {"service.name": service, "service.namespace": "moorings"}
    )
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield GangTraces(provider.get_tracer("moorings"))
    finally:
        await asyncio.to_thread(provider.shutdown)
