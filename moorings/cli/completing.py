"""Shell completion for names of gangs and their pods on the bus.

Whatever goes wrong there is nothing to complete: a shell shows no errors. Where nothing
is found shells complete file names by themselves. Shells put words into the line as
they are, and whoever submits chooses names: what a shell would expand is left out.
"""

from __future__ import annotations

import asyncio
import io
import shlex
import threading
from collections.abc import Awaitable, Callable
from contextlib import redirect_stderr, suppress
from typing import TYPE_CHECKING

import typer

from contracts.errors import ContractsError
from moorings.cli.connecting import connect
from moorings.cli.known import fetch_known
from moorings.errors import MooringsError
from runtime.errors import ServiceError

if TYPE_CHECKING:
    from moorings.bus_client import Client

LONGEST_S = 2.0
"""Longest wait for completions."""
_POD = "pod/"
Asking = Callable[["Client"], Awaitable[list[str]]]


def complete_gangs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a gang, or `namespace/name` once there is a slash."""
    wanted = ctx.params.get("namespace")

    async def ask(client: Client) -> list[str]:
        stories = (await fetch_known(client)).stories
        return [
            f"{story.namespace}/{story.name}" if "/" in incomplete else story.name
            for story in stories
            if wanted in (None, story.namespace)
        ]

    return complete_words(ctx, incomplete, ask)


def complete_explained(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete what `explain` takes: a gang, or `pod/` and the name of a pod."""
    if not incomplete.startswith(_POD):
        pods = [_POD] if incomplete and _POD.startswith(incomplete) else []
        return [*complete_gangs(ctx, incomplete), *pods]

    async def ask(client: Client) -> list[str]:
        stories = (await fetch_known(client)).stories
        records = [record for story in stories for record in story.records]
        written = (await client.fetch_written(records)).values()
        names = [pod.pod for message in written for pod in message.pods]
        for story in stories:
            names += (name for report in story.reports for name in report.names)
        return [f"{_POD}{name}" for name in names]

    return complete_words(ctx, incomplete, ask)


def complete_words(ctx: typer.Context, incomplete: str, ask: Asking) -> list[str]:
    """Ask the bus that the line names so far; each word once, in the order given.

    In a thread that ends with the process: who looks for a server that is not there
    does not let go of it at once.
    """
    params, words = ctx.params, list[str]()

    async def run() -> None:
        server, folder = params.get("server") or "", params.get("state_dir")
        async with connect(server, folder, params.get("cluster") or "local") as client:
            words.extend(await ask(client))

    def look() -> None:
        with suppress(ContractsError, MooringsError, ServiceError, OSError):
            asyncio.run(run())

    thread = threading.Thread(target=look, name="completing", daemon=True)
    with redirect_stderr(io.StringIO()):
        thread.start()
        thread.join(LONGEST_S)
    begun = (word for word in dict.fromkeys(words) if word.startswith(incomplete))
    return [word for word in begun if is_plain(word)]


def is_plain(word: str) -> bool:
    """True if a shell reads a word as it stands, and no command as an option."""
    return not word.startswith("-") and shlex.quote(word) == word
