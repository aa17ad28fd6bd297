"""Commands that run something: the whole stack, or one component."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from moorings.cli.documents import read_state
from moorings.cli.exit_codes import ExitCode
from moorings.cli.output import notify, say, show_progress
from moorings.cli.services import ServiceCommand, run_module
from moorings.console.server import serve_console
from moorings.errors import UsageError
from moorings.local.cluster import check_cluster, read_access
from moorings.local.fleets import list_fleets
from moorings.local.stack import LocalStack, StackOptions, open_stack
from moorings.local.state import find_state_home

WITH_CLUSTER = "With a cluster"
OwnDrivers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DRIVER",
        help="Decide for devices of this driver only; may be repeated.",
        rich_help_panel=WITH_CLUSTER,
    ),
]
OwnClasses = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS",
        help="Decide for claims of this device class only; may be repeated.",
        rich_help_panel=WITH_CLUSTER,
    ),
]
OwnNodes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL",
        help="Decide for nodes of this label, KEY=VALUE, only; may be repeated.",
        rich_help_panel=WITH_CLUSTER,
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(up)
    for name, what in (
        ("solver", "the solver"),
        ("publisher", "the publisher"),
        ("authcallout", "the auth callout of NATS"),
    ):
        text = f"Run {what} until SIGTERM, configured by environment variables."
        app.command(name, cls=ServiceCommand, help=text)(_make_command(name))


def _make_command(module: str) -> Callable[[], None]:
    return lambda: run_module(module)


def up(
    fleet: Annotated[
        str | None,
        typer.Option(
            help="Simulated nodes: `small`, `openb`, `faulty` or a fleet file.",
            show_default="small; none with --kubeconfig",
            autocompletion=list_fleets,
        ),
    ] = None,
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
            metavar="FILE",
            help="DeviceClasses, templates and taint rules, besides the class that "
            "each driver of the fleet gets; may be repeated.",
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Decide for the pods of this cluster.", rich_help_panel=WITH_CLUSTER
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="Context of the kubeconfig; default: its current one.",
            rich_help_panel=WITH_CLUSTER,
        ),
    ] = None,
    own_driver: OwnDrivers = None,
    own_class: OwnClasses = None,
    own_node: OwnNodes = None,
    console: Annotated[
        bool, typer.Option(help="Serve the web console, read-only.")
    ] = True,
) -> None:
    """Run the whole stack on this machine until Ctrl-C."""
    owned = {
        "PUBLISHER_OWNED_DRIVERS": tuple(own_driver or ()),
        "PUBLISHER_OWNED_CLASSES": tuple(own_class or ()),
        "PUBLISHER_OWNED_NODES": tuple(own_node or ()),
    }
    if kubeconfig is None and (context is not None or any(owned.values())):
        raise UsageError("up: --context and --own-* need --kubeconfig")
    if kubeconfig is not None and (folder is not None or filename):
        raise UsageError("up: --folder and -f exclude --kubeconfig")
    options = StackOptions(
        folder=(state_dir or find_state_home()).absolute(),
        fleet="small" if fleet is None and kubeconfig is None else fleet or "",
        manifests=folder,
        cluster=None if kubeconfig is None else read_access(kubeconfig, context or ""),
        owned=owned,
        objects=tuple(read_state(filename or [])),
    )
    raise typer.Exit(asyncio.run(_run_stack(options, has_console=console)))


async def _run_stack(options: StackOptions, *, has_console: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as resources:
        # The cluster is checked before anything starts: its answer names its data.
        with show_progress("starting"):
            if options.cluster is not None:
                cluster_id = await check_cluster(options.cluster)
                options = structs.replace(options, cluster_id=cluster_id)
            stack = await resources.enter_async_context(open_stack(options))
            link = ""
            if has_console:
                viewing = stack.open_client("viewer")
                viewer = await resources.enter_async_context(viewing)
                serving = serve_console(viewer, port=0)
                link = (await resources.enter_async_context(serving)).link()
        # From here on components that end are started again, until we are told to stop.
        for line in _describe_stack(options, stack, link):
            say(line)
        async for line in stack.tend(stop):
            notify(line)
    say("stopped")
    return ExitCode.YES


def _describe_stack(
    options: StackOptions, stack: LocalStack, console: str
) -> Iterator[str]:
    """Yield lines that say what runs, and what to do next."""
    cluster = options.cluster
    parts = [stack.server]
    if options.fleet:
        parts.append(f"fleet {options.fleet}")
    if cluster is not None:
        parts.append(f"cluster {cluster.server} (context {cluster.context})")
    yield f"ready: {', '.join(parts)}"
    if cluster is None:
        yield f"  manifests {stack.manifests}"
    if options.fleet:
        yield f"  faults    {stack.faults}"
    yield f"  logs      {stack.folder}"
    if console:
        yield f"  console   {console}"
    if cluster is None:
        yield "  next      moorings submit -f GANG.yaml --wait"
    else:
        yield "  next      kubectl apply -f PODS.yaml; moorings watch"
