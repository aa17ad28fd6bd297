"""Sends what is due of an outbox: many at a time, never two of one subject."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from publisher.cluster.outbox import Outbox
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.waits import first_of, unless
from runtime.wire import Outgoing

_BATCH = 1000
_PAUSE_S = 1.0

log = get_logger(__name__)


class Sent(NamedTuple):
    """What the bus has stored."""

    messages: int
    sequence: int
    """The highest of theirs."""


async def send_due(
    bus: Bus,
    outbox: Outbox,
    address: Callable[[str, bytes | None], Outgoing],
    stop: asyncio.Event,
    event: str,
) -> Sent | None:
    """Send a batch; None: it was not stored, or not all of it.

    `event` names in the log that it was delayed; `address` makes the message of a
    subject and its bytes (None: it is gone). One message a subject, so that none
    overtakes another.
    """
    batch = list(outbox.next(_BATCH))
    outgoing = [address(subject, data) for subject, data in batch]
    try:
        # Who leads no more must not say later what another has replaced by then.
        sequence = await unless(stop, bus.publish_many(outgoing))
    except BusError as error:
        log.warning(event, messages=len(batch), reason=str(error))
        await first_of(stop, within_s=_PAUSE_S)
        return None
    if sequence is None:
        return None
    outbox.done(batch)
    return Sent(len(batch), sequence)
