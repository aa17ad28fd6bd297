"""The console's web server: our own files, a stream of what changes, and questions.

Listens on loopback alone. Every request is checked for its host and origin, and all but
our own files, which hold no secret, for a token. Source: the OWASP cheat sheets on DNS
rebinding and Content Security Policy.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import resources
from pathlib import Path

import msgspec
from aiohttp import web

from contracts.counts import counted
from contracts.errors import ContractsError
from moorings.bus_client import Client
from moorings.console.access import (
    HEADERS,
    ConsoleRight,
    Tokens,
    is_local,
    is_same_origin,
)
from moorings.console.api import ConsoleApi, Handler, status_of
from moorings.console.following import Following
from moorings.console.model import Update
from moorings.errors import BadInputError, MooringsError
from runtime.errors import ServiceError
from runtime.log import get_logger
from solver.errors import SolverError

LOOPBACK = "127.0.0.1"
MOST_BYTES = 1 << 20
"""Of a request's body."""
MOST_PAGES = 32
"""Pages that follow at once."""
STOP_S = 1.0
CHANGING = "/api/change/"
"""The paths for which a token must let its bearer change something."""
_EXPECTED = (ContractsError, MooringsError, ServiceError, SolverError)
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}

log = get_logger(__name__)


class ConsoleAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a console listens, and by which tokens."""

    port: int
    tokens: Tokens

    def link(self, right: ConsoleRight = ConsoleRight.LOOK) -> str:
        """Make the link that a person opens; what is behind # stays in the browser."""
        token = self.tokens.look if right is ConsoleRight.LOOK else self.tokens.change
        return f"http://{LOOPBACK}:{self.port}/#token={token}"


@asynccontextmanager
async def serve_console(
    client: Client, port: int, changing: Client | None = None
) -> AsyncIterator[ConsoleAddress]:
    """Serve the console of a bus while the block runs.

    `port` 0: any that is free. `changing`: by whom who has the token for it submits,
    cancels and releases; None: nobody may.

    Raises:
        BadInputError: the port cannot be had.
    """
    tokens = Tokens(
        look=secrets.token_urlsafe(24),
        change=secrets.token_urlsafe(24) if changing is not None else "",
    )
    stop = asyncio.Event()
    following = Following(client)
    api = ConsoleApi(client, following, changing)
    app = _make_app(tokens, api, following)
    async with AsyncExitStack() as opened:
        opened.callback(api.solving.close)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=STOP_S, handler_cancellation=True
        )
        await runner.setup()
        opened.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, LOOPBACK, port)
        try:
            await site.start()
        except (OSError, OverflowError) as error:
            raise BadInputError(f"port {port}", str(error)) from error
        task = asyncio.create_task(following.run(stop), name="console")
        opened.push_async_callback(_end_task, task, stop)
        yield ConsoleAddress(port=int(runner.addresses[0][1]), tokens=tokens)


async def _end_task(task: asyncio.Task[None], stop: asyncio.Event) -> None:
    stop.set()
    task.cancel()
    with suppress(asyncio.CancelledError, ServiceError):
        await task


def _make_app(tokens: Tokens, api: ConsoleApi, following: Following) -> web.Application:
    app = web.Application(
        middlewares=(_make_guard(tokens),), client_max_size=MOST_BYTES
    )
    for (method, path), handler in {**api.questions, **api.changes}.items():
        app.router.add_route(method, path, handler)
    app.router.add_get("/api/events", _make_events(tokens, following))
    for name, data in _read_files():
        path = "/" if name == "index.html" else f"/{name}"
        app.router.add_get(path, _make_file(name, data))
    return app


def _make_guard(tokens: Tokens) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Make the middleware of every handler: it checks access and formats errors."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            _check_request(request, tokens)
            response = await handler(request)
        except web.HTTPException as error:
            response = _refuse_request(error.status, error.reason)
        except _EXPECTED as error:
            response = _refuse_request(status_of(error), str(error))
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guard


def _check_request(request: web.Request, tokens: Tokens) -> None:
    """Refuse a request without access.

    Raises:
        HTTPException: the request's host, origin or token is none of ours.
    """
    host = request.headers.get("Host", "")
    if not is_local(host):
        raise web.HTTPMisdirectedRequest(reason="this host is not served")
    if not is_same_origin(request.headers.get("Origin", ""), host):
        raise web.HTTPForbidden(reason="the request is from a page of another origin")
    if not request.path.startswith("/api/"):
        return
    right = tokens.right_of(request.headers.get("Authorization", ""))
    if right is ConsoleRight.NONE:
        raise web.HTTPUnauthorized(reason="the token is missing or wrong")
    if request.path.startswith(CHANGING) and right is not ConsoleRight.CHANGE:
        raise web.HTTPForbidden(reason="this token does not allow changes")


def _refuse_request(status: int, reason: str) -> web.Response:
    body = msgspec.json.encode({"error": reason})
    return web.Response(status=status, body=body, content_type="application/json")


def _make_events(tokens: Tokens, following: Following) -> Handler:
    """Make the handler of the stream: everything first, then what changes."""
    pages = 0

    async def events(request: web.Request) -> web.StreamResponse:
        nonlocal pages
        if pages >= MOST_PAGES:
            reason = f"{counted(pages, 'page follows', 'pages follow')} already"
            raise web.HTTPServiceUnavailable(reason=reason)
        right = tokens.right_of(request.headers.get("Authorization", ""))
        response = web.StreamResponse(headers=HEADERS)
        response.content_type = "text/event-stream"
        pages += 1
        try:
            await response.prepare(request)
            await _send_update(response, {"right": right})
            async with following.listen() as updates:
                async for update in updates:
                    await _send_update(response, update)
        except ConnectionError:
            log.debug("console.page_closed")
        finally:
            pages -= 1
        return response

    return events


async def _send_update(response: web.StreamResponse, update: Update) -> None:
    await response.write(b"data: " + msgspec.json.encode(update) + b"\n\n")


def _make_file(name: str, data: bytes) -> Handler:
    content_type = _TYPES[name[name.rindex(".") :]]

    async def send(_: web.Request) -> web.StreamResponse:  # as aiohttp asks
        return web.Response(body=data, content_type=content_type, charset="utf-8")

    return send


def _read_files() -> list[tuple[str, bytes]]:
    folder = resources.files("moorings.console").joinpath("static")
    files = [file for file in folder.iterdir() if Path(file.name).suffix in _TYPES]
    return [(file.name, file.read_bytes()) for file in files]
