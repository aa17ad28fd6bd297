"""Runs the programs that set a device up for a claim and tear it down."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

from contracts.codec import encode
from nodeagent.errors import PrepareError
from nodeagent.sources.command.process import ENVIRONMENT

_MAX_SAID = 500
"""Characters of what a program says that an error repeats."""


async def run_hook(
    command: tuple[str, ...], told: dict[str, Any], limit_s: float
) -> None:
    """Run a program of the configuration, with JSON on its standard input.

    Raises:
        PrepareError: it cannot be started, fails, or takes too long.
    """
    what = f"{command[0]} for device {told['pool']}/{told['device']}"
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise PrepareError(f"{what}: {error}") from error
    try:
        async with asyncio.timeout(limit_s):
            _, said = await process.communicate(encode(told))
    except TimeoutError as error:
        raise PrepareError(f"{what}: took over {limit_s:g} s") from error
    finally:
        if process.returncode is None:
            # With whatever it has started: its own session is its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        words = said.decode(errors="replace").strip()[-_MAX_SAID:]
        raise PrepareError(f"{what}: exit code {process.returncode}: {words}")
