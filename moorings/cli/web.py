"""The command that serves the web console of a bus."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from moorings.cli.connecting import connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Server, StateDir
from moorings.cli.output import say
from moorings.console.access import ConsoleRight
from moorings.console.server import serve_console
from moorings.errors import UsageError

PORT = 8440
MAX_PORT = 65535


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(console)


def console(
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    port: Annotated[
        int,
        typer.Option(metavar="PORT", help="Port on loopback; 0: any free one."),
    ] = PORT,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Also print a link that lets its bearer submit, cancel and release "
            "gangs.",
        ),
    ] = False,
    browser: Annotated[
        bool, typer.Option("--open", help="Open the link in a browser.")
    ] = False,
) -> None:
    """Serve a web page of the fleet, its gangs and solves, until Ctrl-C.

    On this machine only, to whoever has the link; each start makes a new token.
    From another machine: ssh -L 8440:127.0.0.1:8440 HOST
    """
    if not 0 <= port <= MAX_PORT:
        raise UsageError(f"console: --port {port}: must be from 0 to {MAX_PORT}")

    async def run() -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        async with AsyncExitStack() as opened:
            looking = connect(server, state_dir, cluster)
            client = await opened.enter_async_context(looking)
            changing = None
            if allow_changes:
                sending = connect(server, state_dir, cluster, "platform")
                changing = await opened.enter_async_context(sending)
            serving = serve_console(client, port, changing)
            address = await opened.enter_async_context(serving)
            say(f"console: {address.link()}")
            if allow_changes:
                link = address.link(ConsoleRight.CHANGE)
                say(f"  with this link gangs can be changed: {link}")
            if browser:
                webbrowser.open(address.link())
            await stop.wait()
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))
