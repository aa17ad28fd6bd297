"""Says on the bus, again and again, that this publisher leads.

Without a publisher nobody can write to the cluster that there is none: whoever reads
the bus sees it by this falling silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from contracts.ids import ClusterName
from contracts.liveness import LEADS_S, PublisherLeads
from contracts.topics import LEADERS
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.waits import first_of
from runtime.wire import Outgoing

log = get_logger(__name__)


async def say_leading(
    bus: Bus,
    cluster: ClusterName,
    holder: str,
    now: Callable[[], str],
    lost: asyncio.Event,
) -> None:
    """Publish that we lead, until `lost` is set; an absent bus does not stop it."""
    while not lost.is_set():
        message = PublisherLeads(cluster=cluster, holder=holder, at=now())
        try:
            await bus.publish(Outgoing.of(LEADERS, message))
        except BusError as error:
            log.warning("leads.unsaid", reason=str(error))
        await first_of(lost, within_s=LEADS_S)
