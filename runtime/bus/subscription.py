"""A message as it comes, and interest in a subject that outlives a client.

Knows nothing of how a connection is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as ClientSubscription

_SUBSCRIPTION_BYTES = 128 << 20


class Delivery(NamedTuple):
    """A message as the client library hands it over."""

    subject: str
    reply: str
    data: bytes
    headers: dict[str, str]

    @property
    def status(self) -> str:
        """The server's status code of a message without a body, else empty."""
        return "" if self.data else self.headers.get("Status", "")


Handler = Callable[[Delivery], None]


class Subscription:
    """Interest in a subject that outlives the client it was made with.

    A new client must `attach` each; `detach` ends the interest for good.
    """

    def __init__(self, subject: str, handler: Handler, group: str = "") -> None:
        self.subject = subject
        self.group = group
        """Each message goes to one of its members; empty: to all who subscribe."""
        self._handler = handler
        self._current: ClientSubscription | None = None

    async def attach(self, client: Client) -> None:
        """Subscribe with this client."""
        self._current = await client.subscribe(
            self.subject,
            queue=self.group,
            cb=self._deliver_message,
            pending_bytes_limit=_SUBSCRIPTION_BYTES,
        )

    async def detach(self) -> None:
        """End the interest."""
        with contextlib.suppress(nats.errors.Error):
            if self._current is not None:
                await self._current.unsubscribe()

    async def _deliver_message(self, message: Msg) -> None:
        delivery = Delivery(
            message.subject, message.reply, message.data, message.headers or {}
        )
        self._handler(delivery)
