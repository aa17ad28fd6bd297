"""Commands about recorded solves: list, show, export, and replay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from moorings.cli.completing import complete_gangs
from moorings.cli.completing_solves import complete_replayed, complete_solves
from moorings.cli.connecting import Connecting, connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Output, Server, StateDir
from moorings.cli.output import Format, say, show, show_progress
from moorings.errors import BadInputError
from moorings.views.times import MOMENTS

solves = typer.Typer(
    no_args_is_help=True, help="List, show and export recorded solves."
)
SolveName = Annotated[
    list[str],
    typer.Argument(
        help="Id of a solve, the start of it, or when it was: 2026-11-26T14:03 or "
        "yesterday 14:03.",
        metavar="ID|TIME",
        show_default=False,
        autocompletion=complete_solves,
    ),
]
OfGang = Annotated[
    str,
    typer.Option(
        "--gang",
        help="Only solves in which this gang was tried: its name, namespace/name or "
        "uid.",
        autocompletion=complete_gangs,
        show_default=False,
    ),
]
Since = Annotated[
    str,
    typer.Option(metavar="TIME", help=f"From then on: {MOMENTS}.", show_default=False),
]
Until = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="No later; a minute or a day is meant to its end.",
        show_default=False,
    ),
]
Limit = Annotated[
    int, typer.Option(metavar="N", help="Only the last so many; 0: all.", min=0)
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(solves, name="solves")
    app.command("replay")(replay_command)


@solves.command("list")
def list_command(
    gang: OfGang = "",
    since: Since = "",
    until: Until = "",
    limit: Limit = 0,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """List the recorded solves, oldest first.

    moorings solves list --gang team-a/train --since yesterday
    """
    from moorings.cli.recorded_solves import print_solves  # noqa: PLC0415  # slow to import
    from moorings.recorded import SolveFilter, list_solves  # noqa: PLC0415  # slow to import

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            wanted = await SolveFilter.of(client, gang, since, until)
            entries = [e for e in await list_solves(client) if wanted.lets_through(e)]
            print_solves(entries[-limit:], output)
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


@solves.command("show")
def show_command(
    solve: SolveName,
    gang: OfGang = "",
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Show what was asked and decided in one solve; -o json has all of it."""
    from moorings.cli.recorded_solves import show_solve  # noqa: PLC0415  # slow to import

    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    show_solve(" ".join(solve), gang, bus, output)


@solves.command("export")
def export_command(
    solve: SolveName,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="File to write; default: <solve>.moorings."),
    ] = None,
    gang: OfGang = "",
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
) -> None:
    """Write one solve to a single file that `moorings replay` reads anywhere."""
    from moorings.cli.recorded_solves import fetch_named  # noqa: PLC0415  # slow to import
    from solver.record import dump_export  # noqa: PLC0415  # slow to import

    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    _, recorded = asyncio.run(fetch_named(" ".join(solve), gang, bus))
    target = file or Path(f"{recorded.opened.solve[:16]}.moorings")
    try:
        target.write_bytes(dump_export(recorded))
    except OSError as error:
        raise BadInputError(str(target), str(error.strerror)) from error
    say(f"wrote {target}")


def replay_command(
    solve: Annotated[
        list[str],
        typer.Argument(
            help="A file from `solves export`, a solve's id, or when it was: "
            "2026-11-26T14:03 or yesterday 14:03.",
            metavar="FILE|ID|TIME",
            show_default=False,
            autocompletion=complete_replayed,
        ),
    ],
    gang: OfGang = "",
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Solve a recorded input again and compare bytes; exit 0 only when they agree."""
    from moorings.cli.recorded_solves import load_recorded, print_replay  # noqa: PLC0415  # slow to import
    from solver.replay import replay  # noqa: PLC0415  # OR-Tools is slow to import

    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    recorded = load_recorded(" ".join(solve), gang, bus)
    with show_progress("solving again"):
        result, decision = replay(recorded)
    if output is Format.TABLE:
        print_replay(result, recorded.opened.opened_at)
        say(f"gangs: {len(decision.gangs)}, status: {decision.status}")
    else:
        show(result, output, (), ())
    raise typer.Exit(ExitCode.NO if result.same_bytes is False else ExitCode.YES)
