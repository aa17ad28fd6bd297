"""Commands that run something: the whole stack, or one component."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import NODEFAULT, Struct, structs

from moorings.cli.documents import read_state
from moorings.cli.output import ExitCode, console, notice, progress
from moorings.local import open_stack, state_home
from nodeagent.config import NodeAgentConfig
from publisher.config import PublisherConfig
from solver.service.config import SolverConfig


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(up)
    for name, module, config, what in (
        ("agent", "nodeagent", NodeAgentConfig, "the node agent"),
        ("solver", "solver", SolverConfig, "the solver"),
        ("publisher", "publisher", PublisherConfig, "the publisher"),
    ):
        text = f"Run {what} in this process until SIGTERM; set up by variables."
        variables = "\n\n".join(_variables(config, module.upper()))
        app.command(name, help=text, epilog=variables)(_component(module))


def _variables(config: type[Struct], prefix: str) -> Iterator[str]:
    """List the variables of a service with their defaults."""
    for field in structs.fields(config):
        variable = f"{prefix}_{field.name.upper()}"
        default = field.default
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        yield (
            f"{variable}={default}"
            if default is not NODEFAULT
            else f"{variable} (needed)"
        )


def _component(module: str) -> Callable[[], None]:
    def run() -> None:
        os.execv(sys.executable, [sys.executable, "-m", module])  # noqa: S606  # our own module

    return run


def up(
    fleet: Annotated[
        str, typer.Option(help="`small`, `openb`, `faulty`, or a fleet file.")
    ] = "small",
    state_dir: Annotated[
        Path | None, typer.Option(help="Where the stack keeps its state and logs.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where manifests of decisions are written.")
    ] = None,
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            help="DeviceClasses, templates and taint rules; may be repeated.",
        ),
    ] = None,
) -> None:
    """Run the whole stack on this machine until Ctrl-C.

    Each driver of the fleet has a DeviceClass of its name; -f adds others.
    """
    objects = read_state(filename or [])

    async def run() -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        state = state_dir or state_home()
        manifests = folder or state / "manifests"
        with progress("starting"):
            stack = open_stack(state, manifests, fleet, objects)
            started, _ = await stack.__aenter__()
        try:
            console.print(f"ready: {started.server}, fleet {fleet}")
            console.print(f"  manifests {manifests}")
            console.print(f"  faults    {started.faults}")
            console.print(f"  logs      {state}")
            console.print("  next      moorings submit -f GANG.yaml --wait")
            async for name in started.tend(stop):
                notice(f"{name} ended and was started again")
        finally:
            await stack.__aexit__(None, None, None)
        console.print("stopped")
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))
