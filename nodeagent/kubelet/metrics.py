"""Metrics of kubelet's calls, under the names that dashboards use.

`grpc_server_*` as go-grpc-prometheus has them. What comes of the calls is counted in
nodeagent/metrics.py.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from prometheus_client import Counter, Histogram

_METHOD = ("grpc_type", "grpc_service", "grpc_method")
STARTED = Counter("grpc_server_started_total", "RPCs started on the server.", _METHOD)
HANDLED = Counter(
    "grpc_server_handled_total",
    "RPCs completed on the server, whatever their outcome.",
    (*_METHOD, "grpc_code"),
)
HANDLING = Histogram(
    "grpc_server_handling_seconds",
    "Seconds until the server had handled an RPC.",
    _METHOD,
)

Handler = Callable[[Any, Any], Awaitable[Any]]
StreamHandler = Callable[[Any, Any], AsyncIterator[Any]]


def count_call(service: str, method: str, handler: Handler) -> Handler:
    """Count the calls of a method that answers once."""
    labels = ("unary", service, method)

    async def counted(request: Any, context: Any) -> Any:
        STARTED.labels(*labels).inc()
        started_s, code = time.perf_counter(), grpc.StatusCode.UNKNOWN
        try:
            answer = await handler(request, context)
            code = grpc.StatusCode.OK
            return answer
        finally:
            HANDLING.labels(*labels).observe(time.perf_counter() - started_s)
            HANDLED.labels(*labels, _name_of(code)).inc()

    return counted


def count_stream(service: str, method: str, handler: StreamHandler) -> StreamHandler:
    """Count the calls of a method that answers over and over."""
    labels = ("server_stream", service, method)

    async def counted(request: Any, context: Any) -> AsyncIterator[Any]:
        STARTED.labels(*labels).inc()
        code = grpc.StatusCode.CANCELLED
        try:
            async for answer in handler(request, context):
                yield answer
            code = grpc.StatusCode.OK
        finally:
            HANDLED.labels(*labels, _name_of(code)).inc()

    return counted


def _name_of(code: grpc.StatusCode) -> str:
    """Name a code as Go does: `DeadlineExceeded`."""
    if code is grpc.StatusCode.OK:
        return "OK"
    return "".join(word.capitalize() for word in code.name.split("_"))
