"""Runs an executable once: with limits of time and size, and nothing left of it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from nodeagent.errors import SourceError
from runtime.log import get_logger

MAX_ANSWER_BYTES = 1 << 20
_MAX_STDERR_BYTES = 1 << 14
_MAX_STDERR_LINES = 20
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}
"""Of programs that the sources file names: ours has secrets."""

log = get_logger(__name__)


async def run_command(
    name: str, command: tuple[str, ...], variables: Mapping[str, str], limit_s: float
) -> bytes:
    """Run a command and return what it wrote; its standard error goes to the log.

    It has a session of its own, no standard input, `/` as its folder and an environment
    of these variables, PATH and LANG. All that it started is killed when it ends.

    Raises:
        SourceError: it cannot be started, fails, takes too long or writes too much.
    """
    async with _open_pipe() as answers, _open_pipe() as words:
        process = await _start_process(name, command, variables, answers[1], words[1])
        try:
            async with asyncio.timeout(limit_s):
                answer, said = await asyncio.gather(
                    _read_limited(answers[0], MAX_ANSWER_BYTES + 1),
                    _read_limited(words[0], _MAX_STDERR_BYTES),
                )
                code = await process.wait()
        except TimeoutError as error:
            raise SourceError(name, f"has not ended after {limit_s:g} s") from error
        finally:
            # The group outlives its first process; what does not is gone already.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    lines = said.decode(errors="replace").splitlines()[:_MAX_STDERR_LINES]
    for line in lines:
        log.info("command.said", source=name, line=line[:1000])
    if len(answer) > MAX_ANSWER_BYTES:
        raise SourceError(name, f"answers with over {MAX_ANSWER_BYTES} bytes")
    if code != 0:
        why = f": {lines[-1][:200]}" if lines else ""
        raise SourceError(name, f"ends with exit code {code}{why}")
    return answer


async def _start_process(
    name: str,
    command: tuple[str, ...],
    variables: Mapping[str, str],
    answer_end: int,
    words_end: int,
) -> asyncio.subprocess.Process:
    """Start the command; the ends of the pipes are its own from then on."""
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=answer_end,
            stderr=words_end,
            env={**ENVIRONMENT, **variables},
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SourceError(name, f"cannot be started: {error}") from error
    finally:
        os.close(answer_end)
        os.close(words_end)


@asynccontextmanager
async def _open_pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """Open a pipe; closed with the block, whoever still holds its other end.

    asyncio's own pipes would let a process that outlives the command keep us waiting.
    """
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
    )
    try:
        yield reader, write_end
    finally:
        transport.close()


async def _read_limited(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end, and keep the beginning up to a limit."""
    kept = bytearray()
    while data := await stream.read(1 << 16):
        kept += data[: limit - len(kept)]
    return bytes(kept)
