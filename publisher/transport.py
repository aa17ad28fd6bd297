"""Requests to the API server as bytes: who we are, how many at once, what failed.

The one place that imports kubernetes_asyncio, and only for what a kubeconfig or a
pod's service account means: its generated models are not used, and its exceptions and
aiohttp's stop here. Knows nothing of kinds and objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version

import aiohttp
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.client.rest import RESTClientObject
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)

from publisher.answers import error_of
from publisher.errors import ApiError, ClusterError, UnavailableError

AGENT = "moorings-publisher"
_CONNECT_S = 5.0
_ANSWER_S = 60.0
"""As long as the API server itself tries by default."""
_SILENCE_S = 90.0
"""A stream that is fine says so about once a minute."""
_UNAUTHORIZED = 401

_ANSWERING = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=_ANSWER_S)
_STREAMING = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)


class Transport:
    """One pool of connections to one API server."""

    def __init__(
        self,
        kubeconfig: str,
        context: str,
        configuration: Configuration,
        session: aiohttp.ClientSession,
        in_flight: int,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration = configuration
        self._session = session
        self._slots = asyncio.Semaphore(in_flight)
        self._refused = False
        """Our credentials were: they may be made anew by a program or in a file."""
        self.server = str(configuration.host)
        self._headers = {
            "Accept": "application/json",
            # The API server would spend its CPU on gzip, and we ours.
            "Accept-Encoding": "identity",
            "User-Agent": f"{AGENT}/{version('moorings')}",
        }

    @classmethod
    @asynccontextmanager
    async def open(
        cls, kubeconfig: str, context: str, in_flight: int
    ) -> AsyncIterator[Transport]:
        """Prepare the connections; see `KubernetesApi.open`."""
        configuration = await _configuration(kubeconfig, context)
        try:
            client = RESTClientObject(configuration, maxsize=0)
        except OSError as error:
            raise ClusterError(_named(kubeconfig), str(error)) from error
        try:
            pool = client.pool_manager
            yield cls(kubeconfig, context, configuration, pool, in_flight)
        finally:
            await client.close()

    async def call(
        self,
        what: str,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: bytes | None = None,
        form: str = "application/json",
    ) -> bytes:
        """Send one request and give the body of a good answer.

        `what` names it in errors; `form` is the body's content type.

        Raises:
            ApiError: as its tree says.
        """
        headers = {} if body is None else {"Content-Type": form}
        try:
            async with (
                self._slots,
                self._session.request(
                    method,
                    self.server + path,
                    params=parameters,
                    data=body,
                    headers=await self._signed(headers),
                    timeout=_ANSWERING,
                ) as response,
            ):
                answer = await response.read()
        except _FAILURES as error:
            raise UnavailableError(what, _words(error)) from error
        if not 200 <= response.status < 300:
            raise self._error(what, response, answer)
        return answer

    async def stream(
        self, what: str, path: str, *, parameters: Mapping[str, str]
    ) -> AsyncGenerator[bytes]:
        """Yield nothing (`b""`) once the answer is good, then whole lines as they come.

        All lines that are there come at once; the last one ends with a newline.

        Raises:
            ApiError: as its tree says.
        """
        try:
            async with self._session.get(
                self.server + path,
                params=parameters,
                headers=await self._signed({}),
                timeout=_STREAMING,
            ) as response:
                if response.status != 200:
                    raise self._error(what, response, await response.read())
                yield b""
                lines = b""
                try:
                    while chunk := await response.content.readany():
                        lines += chunk
                        end = lines.rfind(b"\n") + 1
                        if end:
                            yield lines[:end]
                            lines = lines[end:]
                finally:
                    _abort(response)
        except _FAILURES as error:
            raise UnavailableError(what, _words(error)) from error

    async def _signed(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Add who we are; a service account's token is read again every minute."""
        if self._refused and self._kubeconfig:
            self._refused = False
            self._configuration = await _configuration(self._kubeconfig, self._context)
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        signature = {"Authorization": token} if token else {}
        return {**self._headers, **headers, **signature}

    def _error(
        self, what: str, response: aiohttp.ClientResponse, body: bytes
    ) -> ApiError:
        self._refused = self._refused or response.status == _UNAUTHORIZED
        after = response.headers.get("Retry-After")
        return error_of(what, response.status, body, after)


async def _configuration(kubeconfig: str, context: str) -> Configuration:
    configuration = Configuration(api_key={})
    try:
        if kubeconfig:
            await load_kube_config(
                kubeconfig,
                context or None,
                client_configuration=configuration,
                persist_config=False,
            )
        else:
            load_incluster_config(  # type: ignore[no-untyped-call] # has no types
                client_configuration=configuration
            )
    except (ConfigException, OSError, ValueError) as error:
        raise ClusterError(_named(kubeconfig), str(error)) from error
    return configuration


def _named(kubeconfig: str) -> str:
    return f"kubeconfig {kubeconfig}" if kubeconfig else "service account of this pod"


def _abort(response: aiohttp.ClientResponse) -> None:
    """End a stream that we leave without waiting for the server's farewell.

    Nobody would: aiohttp forgets such a connection, and the loop ends before it does.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
