"""Health over HTTP, for those who start and stop processes.

/livez answers as long as the event loop turns: NATS or the API server being away is no
reason to be killed. /readyz answers 200 while the service could do its work: it is
open, has read what it must know, and does not stop. /metrics has what the process
counts, in the text format of Prometheus. Knows no service and nothing of HTTP but this.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from runtime.errors import ConfigError

_REQUEST_S = 5.0
_REQUEST_BYTES = 8192
_ANSWERS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Not Ready"}

_CLIENT_ERRORS = (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError)

IsReady = Callable[[], bool]


@asynccontextmanager
async def serve_health(
    address: str, is_ready: IsReady, variable: str
) -> AsyncIterator[None]:
    """Answer while the block runs; an empty address: nothing is opened.

    Raises:
        ConfigError: the address, of that variable, is none or cannot be had.
    """
    if not address:
        yield
        return

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(*_CLIENT_ERRORS):
            async with asyncio.timeout(_REQUEST_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_answer_request(request, is_ready))
                await writer.drain()
        writer.close()

    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise ConfigError(variable, f"{address}: must be host:port")
    try:
        server = await asyncio.start_server(
            answer, host.strip("[]"), int(port), limit=_REQUEST_BYTES
        )
    except (OSError, OverflowError) as error:
        raise ConfigError(variable, f"{address}: {error}") from error
    async with server:
        yield


def _answer_request(request: bytes, is_ready: IsReady) -> bytes:
    method, path, *_ = [*request.split(b"\r\n", 1)[0].split(b" "), b"", b""]
    if method != b"GET":
        return _make_response(405)
    match path.partition(b"?")[0]:
        case b"/livez":
            return _make_response(200)
        case b"/readyz":
            return _make_response(200 if is_ready() else 503)
        case b"/metrics":
            return _make_response(200, generate_latest(), CONTENT_TYPE_LATEST)
        case _:
            return _make_response(404)


def _make_response(
    status: int, body: bytes = b"", content_type: str = "text/plain"
) -> bytes:
    """Make a response; without a body, of what its status is called."""
    reason = _ANSWERS[status]
    body = body or f"{reason.lower()}\n".encode()
    head = (
        f"HTTP/1.1 {status} {reason}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
