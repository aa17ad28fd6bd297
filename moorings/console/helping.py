"""What would help one gang, for who asks once: the console's engine, without a page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from contracts.lifecycle import GangRecord
from moorings.bus_client import Client
from moorings.console.following import TOPICS, Following
from moorings.console.model import ConsoleModel
from moorings.console.solving import Solving, find_last
from moorings.console.what_if import WhatIf

Row = dict[str, Any]
T = TypeVar("T")


async def find_help(client: Client, record: GangRecord) -> Row:
    """Solve the last question about a gang again, with changes that may let it in.

    Raises:
        UnknownNameError: no recorded solve has the gang.
        SolverError: it cannot be read or solved.
        CannotReadError: our user may not read all that a console shows.
    """

    async def ask(model: ConsoleModel, solving: Solving) -> Row:
        return await solving.find_help(model, record.namespace, record.uid)

    return await ask_once(client, ask)


async def ask_what_if(client: Client, record: GangRecord, what_if: WhatIf) -> Row:
    """Solve the last question about a gang again with a change, and compare.

    Raises:
        UnknownNameError: no recorded solve has the gang.
        BadInputError: the change does not fit the question.
        SolverError: it cannot be read or solved.
        CannotReadError: our user may not read all that a console shows.
    """

    async def ask(model: ConsoleModel, solving: Solving) -> Row:
        solve = find_last(model, record.key).opened.solve
        return {"solve": solve, **await solving.ask(model, solve, what_if)}

    return await ask_once(client, ask)


async def ask_once(
    client: Client, ask: Callable[[ConsoleModel, Solving], Awaitable[T]]
) -> T:
    """Read all that a console reads, ask it, and end its process.

    Raises:
        CannotReadError: our user may not read it.
    """
    # Who follows is patient, also with what it may not read.
    for topic in TOPICS:
        async for _ in client.read(topic, client.cluster, "-"):
            pass
    following, solving, stop = Following(client), Solving(client), asyncio.Event()

    async def answer() -> T:
        async with following.listen():
            return await ask(following.model, solving)

    reading = asyncio.create_task(following.run(stop))
    asking = asyncio.create_task(answer())
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
