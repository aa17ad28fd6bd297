"""One supervised NATS connection: requests, subscriptions, and a new one when lost.

With `subscription` and `client` the only file that imports the client library. Its own
reconnecting is off: a client that is lost, frozen or closed for good is thrown away and
a new one is made, so there is one way back and it is walked in every test. Requests in
flight fail at once. Knows nothing of streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import uuid
from collections.abc import AsyncIterator, Callable, Mapping

import nats.errors
from nats.aio.client import Client

from runtime import metrics
from runtime.bus.client import TolerantClient, Unwanted
from runtime.bus.credentials import read_credentials
from runtime.bus.pending import PendingRequests
from runtime.bus.subscription import Delivery, Handler, Subscription
from runtime.errors import BusRefusedError, BusUnavailableError, NobodyListensError
from runtime.log import get_logger
from runtime.waits import first_of, unless
from runtime.wire import BusSettings

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_PROBE_S = 5.0
_STABLE_S = 1.0
_CLOSE_S = 2.0
_BUFFER_BYTES = 8 << 20
_HEADROOM_BYTES = 16 << 10
"""Kept free for headers: an oversized message costs the connection."""
_DEFAULT_PAYLOAD_BYTES = 1 << 20

log = get_logger(__name__)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """True if asyncio logs more than the end of a TLS connection.

    The client library begins TLS on an open stream, and the stream's protocol is not
    told. Can go when it uses `StreamWriter.start_tls`.
    """
    return "eof_received() has no effect when using ssl" not in record.msg


logging.getLogger("asyncio").addFilter(_is_worth_logging)


class Connection:
    """A connection that comes back by itself; what the modules of the bus share.

    Lives inside `keep_up`. A caller waits with `wait_up` before its first request, and
    is told by `listeners` when the connection comes or goes.
    """

    def __init__(
        self, settings: BusSettings, is_unwanted: Unwanted | None = None
    ) -> None:
        self.settings = settings
        self._is_unwanted = is_unwanted
        self.count = 0
        """Connections so far."""
        self.listeners: set[Callable[[], None]] = set()
        """Called whenever the connection comes or goes."""
        self._client: Client | None = None
        self._up = asyncio.Event()
        self._closing = asyncio.Event()
        self._subscriptions: set[Subscription] = set()
        self._pending: PendingRequests[Delivery] = PendingRequests()
        self._failure = ""
        """Why the last attempt to connect failed."""
        self._inbox = self.new_inbox()
        self._answers_subscription = Subscription(
            f"{self._inbox}.*", self._answer_delivery
        )
        self._subscriptions.add(self._answers_subscription)

    @contextlib.asynccontextmanager
    async def keep_up(self) -> AsyncIterator[None]:
        """Keep the connection up while the block runs."""
        supervisor = asyncio.create_task(self._supervise_clients(), name="bus")
        try:
            yield
        finally:
            self._closing.set()
            if not self._up.is_set():
                supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await supervisor

    @property
    def connected(self) -> bool:
        """True if requests can be sent now."""
        return self._up.is_set()

    @property
    def max_bytes(self) -> int:
        """The largest body that a message may have."""
        limit = self._client.max_payload if self._client else _DEFAULT_PAYLOAD_BYTES
        return self.settings.max_message_bytes(int(limit)) - _HEADROOM_BYTES

    @property
    def server_version(self) -> str:
        """Of nats-server; empty while there is no connection."""
        if self._client is None:
            return ""
        version = self._client.connected_server_version
        return f"{version.major}.{version.minor}.{version.patch}"

    def new_inbox(self) -> str:
        """Make a subject that only this process listens to."""
        return f"{self.settings.inbox_prefix}.{uuid.uuid4().hex[:22]}"

    def api_subject(self, operation: str) -> str:
        """Give the subject of a request to JetStream, such as `STREAM.INFO.INV`."""
        return f"{self.settings.api_prefix}.{operation}"

    async def wait_up(self, what: str, timeout_s: float | None = None) -> None:
        """Return once connected.

        Raises:
            BusUnavailableError: not within the time (default: of one request).
        """
        if self.connected:
            return
        try:
            async with asyncio.timeout(timeout_s or self.settings.request_timeout_s):
                await self._up.wait()
        except TimeoutError as error:
            why = f"not connected{f': {self._failure}' if self._failure else ''}"
            raise BusUnavailableError(what, why) from error

    async def subscribe(
        self, subject: str, handler: Handler, group: str = ""
    ) -> Subscription:
        """Hand over every message on a subject; the server knows when this returns.

        With a `group` its members share them.
        """
        subscription = Subscription(subject, handler, group)
        self._subscriptions.add(subscription)
        client = self._client
        if client is not None:
            with contextlib.suppress(nats.errors.Error):
                await subscription.attach(client)
                # A PING overtakes what is buffered, so the second one is the barrier.
                # A cancelled one would kill the client's read loop.
                await asyncio.shield(_flush_twice(client))
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription."""
        self._subscriptions.discard(subscription)
        await subscription.detach()

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a message and wait for nothing.

        Raises:
            BusUnavailableError: there is no connection.
            BusRefusedError: the message cannot be sent at all.
        """
        client = self._client
        if client is None:
            raise BusUnavailableError(subject, "not connected")
        if len(data) > self.max_bytes:
            reason = f"{len(data)} bytes, more than the {self.max_bytes} allowed"
            raise BusRefusedError(subject, reason)
        try:
            await client.publish(
                subject, data, reply, headers=dict(headers) if headers else None
            )
        except (
            nats.errors.BadSubjectError,
            nats.errors.MaxPayloadError,
            nats.errors.BadHeaderError,
        ) as error:
            raise BusRefusedError(subject, str(error)) from error
        except (nats.errors.Error, OSError) as error:
            raise BusUnavailableError(subject, str(error)) from error

    async def send(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None = None
    ) -> asyncio.Future[Delivery]:
        """Send a request; its future fails at once when the connection is lost.

        The caller awaits it with `answer`.
        """
        token, future = self._pending.add(subject)
        try:
            reply = f"{self._inbox}.{token}"
            await self.publish(subject, data, reply=reply, headers=headers)
        except BaseException:
            future.cancel()
            raise
        return future

    async def answer(
        self,
        subject: str,
        future: asyncio.Future[Delivery],
        timeout_s: float | None = None,
    ) -> Delivery:
        """Wait for the answer of a request.

        Raises:
            BusUnavailableError: none within the time.
            NobodyListensError: nobody is there who would answer.
            NotAllowedError: our user may not ask that.
        """
        limit_s = timeout_s or self.settings.request_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                delivery = await future
        except TimeoutError as error:
            raise BusUnavailableError(subject, f"no answer in {limit_s} s") from error
        if delivery.status == "503":
            is_relayed = self.settings.is_outside
            why = "no solver or publisher runs" if is_relayed else "nobody listens"
            raise NobodyListensError(subject, f"{why} there")
        return delivery

    async def request(
        self,
        subject: str,
        data: bytes = b"",
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Delivery:
        """Send a request when connected and wait for its answer: one attempt.

        Raises:
            BusUnavailableError: no connection, or no answer, within the time.
        """
        await self.wait_up(subject, timeout_s)
        future = await self.send(subject, data, headers)
        return await self.answer(subject, future, timeout_s)

    def _answer_delivery(self, delivery: Delivery) -> None:
        self._pending.answer(delivery.subject.rpartition(".")[2], delivery)

    async def _supervise_clients(self) -> None:
        """Make one client after the other until closing; use each until it fails."""
        pause_s, told = _FIRST_PAUSE_S, False
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            began_s, count = loop.time(), self.count
            lost, client = asyncio.Event(), TolerantClient(self._is_unwanted)
            try:
                await self._connect_client(client, lost)
                await self._serve_client(client, lost)
            except (nats.errors.Error, OSError, ValueError, EOFError) as error:
                self._failure = str(error)
                if self.count == count and not told:
                    log.warning(
                        "bus.connect_failed",
                        reason=str(error),
                        servers=self.settings.addresses,
                    )
            finally:
                await self._drop_client(client)
            told = self.count == count
            if self.count > count and loop.time() - began_s > _STABLE_S:
                pause_s = _FIRST_PAUSE_S
            spread_s = pause_s * random.uniform(0.5, 1.5)  # noqa: S311 # spreads the load, hides nothing
            await first_of(self._closing, within_s=spread_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _connect_client(
        self, client: TolerantClient, lost: asyncio.Event
    ) -> None:
        async def on_error(error: Exception) -> None:
            log.warning(
                "bus.error_reported",
                reason=str(error) or repr(error),
                servers=self.settings.addresses,
            )
            self._pending.fail_forbidden(str(error), self.settings.user)

        async def on_lost() -> None:
            lost.set()

        servers = random.sample(self.settings.servers, len(self.settings.servers))
        trusted, login, password = read_credentials(self.settings)
        await client.connect(
            servers=servers,
            name=self.settings.name,
            inbox_prefix=self.settings.inbox_prefix,
            tls=trusted,
            # Otherwise a server that speaks no TLS would be told the password.
            tls_handshake_first=trusted is not None,
            user=login or None,
            password=password,
            allow_reconnect=False,
            connect_timeout=5,
            ping_interval=20,
            max_outstanding_pings=2,
            pending_size=_BUFFER_BYTES,
            error_cb=on_error,
            disconnected_cb=on_lost,
            closed_cb=on_lost,
        )
        # To the library a connection that ends without an answer is one that stands.
        await unless(lost, client.rtt(timeout=int(_PROBE_S)))
        if lost.is_set() or not client.is_sending:
            raise nats.errors.Error("the server did not answer as it should")

    async def _serve_client(self, client: TolerantClient, lost: asyncio.Event) -> None:
        for subscription in tuple(self._subscriptions):
            await subscription.attach(client)
        self._client = client
        self._failure = ""
        self.count += 1
        metrics.BUS_CONNECTIONS.inc()
        metrics.BUS_CONNECTED.set(1)
        self._up.set()
        self._notify_listeners()
        log.info("bus.connected", connection=self.count)
        closing = asyncio.create_task(self._closing.wait())
        closing.add_done_callback(lambda _: lost.set())
        try:
            await first_of(lost, within_s=_PROBE_S)
            while not lost.is_set():
                # Written past the buffer: an answer says nothing of what waits there.
                await client.rtt(timeout=int(_PROBE_S))
                if not client.is_sending:
                    raise nats.errors.Error("the client library sends no more")
                await first_of(lost, within_s=_PROBE_S)
        finally:
            closing.cancel()
        if not self._closing.is_set():
            log.warning("bus.disconnected", connection=self.count)

    async def _drop_client(self, client: Client) -> None:
        """Fail what waits for this client, tell the listeners, close it."""
        self._client = None
        metrics.BUS_CONNECTED.set(0)
        self._up.clear()
        self._pending.fail_all()
        self._notify_listeners()
        try:
            with contextlib.suppress(TimeoutError, OSError, nats.errors.Error):
                async with asyncio.timeout(_CLOSE_S):
                    await client.close()
        finally:  # also when who leaves does not wait for that
            await _abort_client(client)

    def _notify_listeners(self) -> None:
        for listener in tuple(self.listeners):
            listener()


async def _abort_client(client: Client) -> None:
    """End what `close` left open: a server that reads no more, or says no farewell."""
    writer = getattr(client._transport, "_io_writer", None)  # noqa: SLF001 # no other way
    if writer is not None:
        writer.transport.abort()
        await asyncio.sleep(0)  # the loop closes the socket in its next turn


async def _flush_twice(client: Client) -> None:
    await client.flush()
    await client.flush()
