"""Requests to the API server as bytes: how many at once and a second, what failed.

With `sockets` the one place that imports aiohttp, whose exceptions stop here. Knows
nothing of kinds and objects.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from importlib.metadata import version

import aiohttp

from runtime import metrics
from runtime.kube.answers import error_of
from runtime.kube.credentials import read_credentials
from runtime.kube.errors import ApiError, ClusterError, UnavailableError
from runtime.kube.identity import Credentials
from runtime.kube.request_limit import RequestLimit
from runtime.kube.sockets import closing_sockets

_CONNECT_S = 5.0
_ANSWER_S = 60.0
"""As long as the API server itself tries by default."""
_SILENCE_S = 90.0
"""A stream that is fine says so about once a minute."""
_BUFFER_BYTES = 2 << 20
"""Of a stream: an object of 1.5 MiB is one line."""
_UNAUTHORIZED = 401

_ANSWERING = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=_ANSWER_S)
_STREAMING = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)


class Transport:
    """One pool of connections to one API server."""

    def __init__(
        self,
        credentials: Credentials,
        session: aiohttp.ClientSession,
        in_flight: int,
        limit: RequestLimit,
    ) -> None:
        self._credentials = credentials
        self._session = session
        self._limit = limit
        self._slots = asyncio.Semaphore(in_flight)
        self._server_name = credentials.server_name
        self.server = credentials.server

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kubeconfig: str,
        context: str,
        in_flight: int,
        user_agent: str,
        limit: RequestLimit | None = None,
    ) -> AsyncIterator[Transport]:
        """Prepare the connections; see `KubernetesApi.open`."""
        credentials = await read_credentials(kubeconfig, context)
        # Not trust_env: aiohttp would look for a proxy in a thread at each request,
        # which doubles what a request costs us.
        async with (
            closing_sockets() as make_socket,
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=credentials.tls(), limit=0, socket_factory=make_socket
                ),
                proxy=credentials.proxy(),
                read_bufsize=_BUFFER_BYTES,
                headers={
                    "Accept": "application/json",
                    # The API server would spend its CPU on gzip, and we ours.
                    "Accept-Encoding": "identity",
                    "User-Agent": f"{user_agent}/{version('moorings')}",
                },
            ) as session,
        ):
            yield cls(credentials, session, in_flight, limit or RequestLimit())

    async def call(
        self,
        what: str,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: bytes | None = None,
        form: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """Send one request and return the body of a good answer.

        `what` names it in errors; `form` is the body's content type, `accept` that of
        the answer.

        Raises:
            ApiError: as its tree says.
        """
        answer, _ = await self._send_request(
            what,
            method,
            path,
            parameters=parameters,
            body=body,
            form=form,
            accept=accept,
        )
        return answer

    async def read_date(self, what: str, path: str) -> float:
        """Return the server's time in seconds since the epoch, cut to whole ones.

        Raises:
            ApiError: as its tree says.
        """
        _, headers = await self._send_request(what, "GET", path)
        try:
            return parsedate_to_datetime(headers.get("Date", "")).timestamp()
        except ValueError as error:
            raise UnavailableError(what, "the answer has no Date") from error

    async def _send_request(
        self,
        what: str,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: bytes | None = None,
        form: str = "",
        accept: str = "application/json",
    ) -> tuple[bytes, Mapping[str, str]]:
        """Send one request and return body and headers of a good answer."""
        await self._await_turn(method)
        headers = await self._sign_request(what) | {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = form
        began_s, code = time.monotonic(), "<error>"
        try:
            async with (
                self._slots,
                self._session.request(
                    method,
                    self.server + path,
                    params=parameters,
                    data=body,
                    headers=headers,
                    server_hostname=self._server_name,
                    timeout=_ANSWERING,
                ) as response,
            ):
                answer = await response.read()
                code = str(response.status)
        except _FAILURES as error:
            raise UnavailableError(what, _describe_error(error)) from error
        finally:
            metrics.API_REQUESTS.labels(code, method).inc()
            metrics.API_SECONDS.labels(method).observe(time.monotonic() - began_s)
        if not 200 <= response.status < 300:
            raise self._make_error(what, response, answer)
        return answer, response.headers

    async def stream(
        self, what: str, path: str, *, parameters: Mapping[str, str]
    ) -> AsyncGenerator[bytes]:
        """Yield nothing (`b""`) once the answer is good, then whole lines as they come.

        All lines that are there come at once; the last one ends with a newline.

        Raises:
            ApiError: as its tree says.
        """
        await self._await_turn("WATCH")
        try:
            async with self._session.get(
                self.server + path,
                params=parameters,
                headers=await self._sign_request(what),
                server_hostname=self._server_name,
                timeout=_STREAMING,
            ) as response:
                if response.status != 200:
                    raise self._make_error(what, response, await response.read())
                yield b""
                lines = b""
                while chunk := await response.content.readany():
                    lines += chunk
                    end = lines.rfind(b"\n") + 1
                    if end:
                        yield lines[:end]
                        lines = lines[end:]
        except _FAILURES as error:
            raise UnavailableError(what, _describe_error(error)) from error

    async def _await_turn(self, verb: str) -> None:
        """Wait until the limit lets one more request go."""
        waited_s = await self._limit.wait_turn()
        if waited_s:
            metrics.API_THROTTLED.labels(verb).observe(waited_s)

    async def _sign_request(self, what: str) -> dict[str, str]:
        try:
            token = await self._credentials.token()
        except ClusterError as error:
            raise UnavailableError(what, str(error)) from error
        return {"Authorization": token} if token else {}

    def _make_error(
        self, what: str, response: aiohttp.ClientResponse, body: bytes
    ) -> ApiError:
        if response.status == _UNAUTHORIZED:
            self._credentials.note_refusal()
        after = response.headers.get("Retry-After")
        return error_of(what, response.status, body, after)


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
