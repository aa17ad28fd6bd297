"""`moorings demo`: the whole job on this machine, step by step."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Output
from moorings.cli.output import Format, say, show
from moorings.local.stack import StackOptions, open_stack

if TYPE_CHECKING:
    from moorings.demo.demo import DemoOptions


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(demo)


def demo(
    fleet: Annotated[str, typer.Option(help="`openb`, `small` or a fleet file.")] = (
        "openb"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the random work.")] = 1,
    trace: Annotated[
        Path | None,
        typer.Option(help="Folder of the real openb trace, instead of random work."),
    ] = None,
    load: Annotated[
        float, typer.Option(help="Requested GPUs, as a share of the fleet.", min=0.01)
    ] = 1.2,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the folder with logs and manifests.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Run the whole job on this machine: start, submit, decide, explain, replay."""
    from moorings.demo.demo import DemoOptions  # noqa: PLC0415  # OR-Tools is slow to import

    options = DemoOptions(fleet=fleet, seed=seed, trace=trace, load=load)
    folder = Path(tempfile.mkdtemp(prefix="moorings-demo-"))
    try:
        summary = asyncio.run(
            _run_demo(options, folder, quiet=output is not Format.TABLE)
        )
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if output is not Format.TABLE:
        show(summary, output, (), ())
    elif keep:
        say(f"kept     {folder}")
    good = summary["sameBytes"] is True and summary["avoided"]
    raise typer.Exit(ExitCode.YES if good else ExitCode.NO)


async def _run_demo(
    options: DemoOptions, folder: Path, *, quiet: bool
) -> dict[str, Any]:
    from moorings.demo.demo import Demo  # noqa: PLC0415  # OR-Tools is slow to import

    started = time.perf_counter()

    def tell(text: str) -> None:
        if not quiet:
            seconds = time.perf_counter() - started
            say(f"{seconds:6.2f}s  {text}")

    tell("stack    nats-server, node agent, solver and publisher start on loopback")
    stack_options = StackOptions(folder=folder, fleet=options.fleet)
    async with (
        open_stack(stack_options) as stack,
        stack.open_client("platform") as platform,
        stack.open_client("viewer") as viewer,
    ):
        tell(f"         ready at {stack.server}")
        summary = await Demo(options, stack, platform, viewer, tell).run()
    tell("stack    stopped")
    summary["seconds"] = round(time.perf_counter() - started, 2)
    return summary
