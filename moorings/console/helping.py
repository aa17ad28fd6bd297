"""What would help one gang, for who asks once: the console's engine, without a page."""

from __future__ import annotations

import asyncio
from typing import Any

from contracts.lifecycle import GangRecord
from moorings.bus_client import Client
from moorings.console.following import Following
from moorings.console.solving import Solving


async def find_help(client: Client, record: GangRecord) -> dict[str, Any]:
    """Solve the last question about a gang again, with changes that may let it in.

    Raises:
        UnknownNameError: no recorded solve has the gang.
        SolverError: it cannot be read or solved.
        BusError: the bus cannot be read.
    """
    following, solving, stop = Following(client), Solving(client), asyncio.Event()

    async def ask() -> dict[str, Any]:
        async with following.listen():
            return await solving.find_help(
                following.model, record.namespace, record.uid
            )

    reading = asyncio.create_task(following.run(stop))
    asking = asyncio.create_task(ask())
    try:
        await asyncio.wait((reading, asking), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
        return await asking
    finally:
        asking.cancel()
        stop.set()
        await asyncio.wait((reading, asking))
        solving.close()
