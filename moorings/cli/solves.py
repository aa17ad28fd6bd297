"""Commands about recorded solves: list, show, export, and replay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moorings.cli.completing_solves import complete_replayed, complete_solves
from moorings.cli.connecting import connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Output, Server, StateDir
from moorings.cli.output import Format, say, show, show_progress
from moorings.errors import BadInputError
from moorings.recorded import SolveEntry, fetch_solve, find_solve, list_solves
from solver.decision import DECISION
from solver.record import Recorded, dump_export, load_export

if TYPE_CHECKING:
    from solver.replay import ReplayResult

solves = typer.Typer(
    no_args_is_help=True, help="List, show and export recorded solves."
)
SolveName = Annotated[
    str,
    typer.Argument(
        help="Id of a solve, or the start of it.",
        show_default=False,
        autocompletion=complete_solves,
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(solves, name="solves")
    app.command("replay")(replay_command)


@solves.command("list")
def list_command(
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """List the recorded solves, oldest first."""

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            print_solves(await list_solves(client), output)
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


def print_solves(entries: list[SolveEntry], output: Format) -> None:
    """Print recorded solves in a row each."""
    columns = ("solve", "at", "status", "gangs", "allocated", "waiting", "ms")
    rows = (_to_row(entry) for entry in entries)
    show(entries, output, columns, rows, "no solves are recorded")


def _to_row(entry: SolveEntry) -> tuple[object, ...]:
    opened, decided = entry.opened, entry.decided
    head = (opened.solve[:16], opened.opened_at[:19])
    if decided is None:
        return (*head, "open", len(opened.gangs), "", "", "")
    milliseconds = round(decided.solve_seconds * 1000, 1)
    counts = (len(opened.gangs), decided.allocated, decided.pending)
    return (*head, decided.status, *counts, milliseconds)


@solves.command("show")
def show_command(
    solve: SolveName,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.JSON,
) -> None:
    """Show what was asked and decided in one solve."""

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            entry = await find_solve(client, solve)
            recorded = await fetch_solve(client, entry)
        problem = recorded.problem()
        value = {
            "opened": entry.opened,
            "decided": entry.decided,
            "gangs": problem.gangs,
            "parameters": problem.parameters,
            "pages": len(problem.pages),
            "decision": DECISION.decode(recorded.decision)
            if recorded.decision
            else None,
        }
        rows = [(gang.namespace, gang.name, gang.pods) for gang in problem.gangs]
        columns = ("namespace", "gang", "pods")
        show(value, output, columns, rows, "the solve has no gangs")
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


@solves.command("export")
def export_command(
    solve: SolveName,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="File to write; default: <solve>.moorings."),
    ] = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
) -> None:
    """Write one solve to a single file that `moorings replay` reads anywhere."""

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            recorded = await fetch_solve(client, await find_solve(client, solve))
        target = file or Path(f"{recorded.opened.solve[:16]}.moorings")
        try:
            target.write_bytes(dump_export(recorded))  # nothing else runs
        except OSError as error:
            raise BadInputError(str(target), str(error.strerror)) from error
        say(f"wrote {target}")
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


def replay_command(
    solve: Annotated[
        str,
        typer.Argument(
            help="A file from `solves export`, or a solve's id.",
            autocompletion=complete_replayed,
        ),
    ],
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Solve a recorded input again and compare bytes; exit 0 only when they agree."""
    from solver.replay import replay  # noqa: PLC0415  # OR-Tools is slow to import

    recorded = asyncio.run(_load_recorded(solve, server, state_dir, cluster))
    with show_progress("solving again"):
        result, decision = replay(recorded)
    if output is Format.TABLE:
        print_replay(result)
        say(f"gangs: {len(decision.gangs)}, status: {decision.status}")
    else:
        show(result, output, (), ())
    raise typer.Exit(ExitCode.NO if result.same_bytes is False else ExitCode.YES)


async def _load_recorded(
    solve: str, server: str, state_dir: Path | None, cluster: str
) -> Recorded:
    path = Path(solve)
    if path.is_file():  # noqa: ASYNC240  # nothing else runs
        return load_export(path.read_bytes())  # noqa: ASYNC240  # nothing else runs
    if path.suffix or path.name != solve:
        raise BadInputError(solve, "there is no such file")  # ids have neither
    async with connect(server, state_dir, cluster) as client:
        return await fetch_solve(client, await find_solve(client, solve))


def print_replay(result: ReplayResult) -> None:
    """Print what solving again showed, for people."""
    verdict = {
        True: "same bytes",
        False: "different bytes",
        None: "no answer was recorded to compare with",
    }[result.same_bytes]
    say(f"solve {result.solve}: {verdict}")
    say(f"  decision {result.replayed_decision}")
    if not result.same_versions:
        say("  solved with other versions: bytes may differ, objectives may not")
    if not result.same_platform:
        say("  solved on another platform: bytes may differ")
    for line in result.differences:
        say(f"  {line}")
