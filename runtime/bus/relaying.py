"""The process of a relay, and how services keep one beside them.

Services in CORE have one each, as their user: whichever of them runs, outsiders are
answered, and what they publish is stored. It ends with the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from msgspec import structs

from runtime.bus.relay import open_relay
from runtime.bus.storing import Storing
from runtime.kernel import die_with_parent
from runtime.log import get_logger
from runtime.run import Task, run_service
from runtime.wire import BusSettings

_PAUSE_S = 1.0
"""Between the end of one and the start of the next."""
_COMMAND = (sys.executable, "-m", "runtime.bus.relaying")

log = get_logger(__name__)


@asynccontextmanager
async def relaying(settings: BusSettings) -> AsyncIterator[None]:
    """Keep a relay's process running while the block runs.

    Where the bus has no users nobody is outside, and there is none.
    """
    if not settings.user:
        yield
        return
    keeping = asyncio.create_task(_keep_process(settings), name="relay")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))


async def _keep_process(settings: BusSettings) -> None:
    told = msgspec.json.encode(structs.replace(settings, name=f"{settings.name}-relay"))
    while True:
        process = await asyncio.create_subprocess_exec(
            *_COMMAND,
            stdin=PIPE,
            start_new_session=True,
            preexec_fn=partial(die_with_parent),
        )
        try:
            await process.communicate(told)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        log.warning("relay.ended", code=process.returncode)
        await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def _open_tasks(settings: BusSettings) -> AsyncIterator[Mapping[str, Task]]:
    storing = Storing(settings)
    async with open_relay(settings) as relay, storing.listening():
        yield {"relay": relay.run, "storing": storing.run}


def main() -> int:
    """Run a relay with the settings that are on standard input."""
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=BusSettings)
    return run_service("relay", lambda: _open_tasks(settings))


if __name__ == "__main__":
    sys.exit(main())
