"""A receiver of traces by OTLP over HTTP, as a collector is; keeps what it gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class ReceivedSpan(Struct, frozen=True, kw_only=True):
    """A span as it came."""

    service: str
    name: str
    trace: str
    """The trace's id, in hex."""
    id: str
    parent: str
    began_ns: int
    ended_ns: int
    attributes: dict[str, str]


class Collector:
    """What was received so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[ReceivedSpan] = []

    def take(self, body: bytes) -> None:
        """Keep the spans of one request."""
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _texts(of_resource.resource.attributes)["service.name"]
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    self.spans.append(_read(service, span))


def _read(service: str, span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        service=service,
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        attributes=_texts(span.attributes),
    )


def _texts(attributes: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Receive while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/x-protobuf"
            collector.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # as its base names it
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}/v1/traces")
        serving = Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield collector
        finally:
            server.shutdown()
            serving.join()
