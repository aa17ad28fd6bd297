"""Commands about recorded solves: list, show, export, and replay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from contracts.counts import counted
from moorings.cli.completing import complete_gangs
from moorings.cli.completing_solves import complete_replayed, complete_solves
from moorings.cli.connecting import Connecting, connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Output, Server, StateDir
from moorings.cli.output import Format, say, show, show_progress, show_table
from moorings.cli.views import NONE
from moorings.errors import BadInputError
from moorings.recorded import (
    SolveEntry,
    SolveFilter,
    fetch_solve,
    find_solve,
    list_solves,
)
from moorings.views.reasons import share_reasons
from moorings.views.solves import view_entry, view_solve
from moorings.views.times import MOMENTS, read_span, show_time
from solver.decision import DECISION
from solver.record import Recorded, dump_export, load_export

if TYPE_CHECKING:
    from solver.replay import ReplayResult

solves = typer.Typer(
    no_args_is_help=True, help="List, show and export recorded solves."
)
SOLVE_COLUMNS = ("solve", "at", "status", "gangs", "allocated", "waiting", "ms")
BATCH_COLUMNS = ("gang", "priority", "pods", "answer", "reason")
TIER_COLUMNS = ("objective", "priority", "value", "bound")
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

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            wanted = await SolveFilter.of(client, gang, since, until)
            entries = [e for e in await list_solves(client) if wanted.lets_through(e)]
            print_solves(entries[-limit:], output)
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


def print_solves(entries: list[SolveEntry], output: Format) -> None:
    """Print recorded solves in a row each."""
    rows = (to_row(entry) for entry in entries)
    show(entries, output, SOLVE_COLUMNS, rows, "no such solves are recorded")


def to_row(entry: SolveEntry) -> tuple[object, ...]:
    """Return the row of a recorded solve."""
    row = view_entry(entry)
    head = (row["id"][:16], show_time(row["at"]), row["status"], row["gangs"])
    if entry.decided is None:
        return (*head, "", "", "")
    return (*head, row["allocated"], row["pending"], row["milliseconds"])


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
    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    show_solve(" ".join(solve), gang, bus, output)


def show_solve(solve: str, gang: str, bus: Connecting, output: Format) -> NoReturn:
    """Show a solve, and end the command."""
    entry, recorded = asyncio.run(_fetch(solve, gang, bus))
    problem = recorded.problem()
    decision = DECISION.decode(recorded.decision) if recorded.decision else None
    if output is Format.TABLE:
        print_solve(view_solve(entry, problem, decision))
        raise typer.Exit(ExitCode.YES)
    value = {
        "opened": entry.opened,
        "decided": entry.decided,
        "gangs": problem.gangs,
        "parameters": problem.parameters,
        "pages": len(problem.pages),
        "decision": decision,
    }
    show(value, output, (), ())
    raise typer.Exit(ExitCode.YES)


def print_solve(view: dict[str, Any]) -> None:
    """Print one solve, for people: what it was about, its gangs, and its objective."""
    cluster, statistics = view["cluster"], view["statistics"]
    answered = f"{view['status']} after {view['milliseconds']} ms"
    by = f", by {statistics['engine']}" if statistics else ""
    say(f"Solve:    {view['id']}")
    say(f"At:       {show_time(view['at'])}")
    say(f"Status:   {f'{answered}{by}' if statistics else 'open'}")
    say(
        f"Cluster:  {counted(cluster['nodes'], 'node')}, "
        f"{counted(cluster['devices'], 'device')}, {cluster['held']} held"
    )
    say(
        f"Gangs:    {view['gangs']}: {view['allocated']} allocated, {view['pending']} "
        f"waiting, {view['rejected']} rejected"
    )
    say(f"Version:  {view['version']} on {view['platform']}")
    say(f"Replay:   moorings replay {view['id'][:16]}")
    say("")
    answers = [gang["answer"] or {} for gang in view["batch"]]
    reasons = [next(iter(answer.get("reasons", ())), NONE) for answer in answers]
    cells, lines = share_reasons(reasons)
    rows = [
        (
            gang["name"],
            gang["priority"],
            _count_asked(gang),
            _describe_answer(gang),
            why,
        )
        for gang, why in zip(view["batch"], cells, strict=True)
    ]
    show_table(BATCH_COLUMNS, rows, "the solve has no gangs")
    for line in lines:
        say(line)
    if view["objective"]:
        say("")
        show_table(TIER_COLUMNS, map(_to_tier_row, view["objective"]))


def _count_asked(gang: dict[str, Any]) -> int:
    return sum(member["count"] for member in gang["members"])


def _describe_answer(gang: dict[str, Any]) -> str:
    answer = gang["answer"]
    if answer is None:
        return "open"
    if answer["verdict"] == "allocated":
        return f"allocated on {counted(answer['nodes'], 'node')}"
    return "waits" if answer["verdict"] == "none" else "error"


def _to_tier_row(tier: dict[str, Any]) -> tuple[object, ...]:
    bound = tier["bound"]
    cells = (tier["priority"], tier["value"], bound)
    return (tier["what"], *(NONE if cell is None else cell for cell in cells))


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
    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    _, recorded = asyncio.run(_fetch(" ".join(solve), gang, bus))
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
    from solver.replay import replay  # noqa: PLC0415  # OR-Tools is slow to import

    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    recorded = _load_recorded(" ".join(solve), gang, bus)
    with show_progress("solving again"):
        result, decision = replay(recorded)
    if output is Format.TABLE:
        print_replay(result, recorded.opened.opened_at)
        say(f"gangs: {len(decision.gangs)}, status: {decision.status}")
    else:
        show(result, output, (), ())
    raise typer.Exit(ExitCode.NO if result.same_bytes is False else ExitCode.YES)


def _load_recorded(solve: str, gang: str, bus: Connecting) -> Recorded:
    """Read a file, or fetch a solve by its id or its time."""
    path = Path(solve)
    if path.is_file():
        return load_export(path.read_bytes())
    is_time = read_span(solve, datetime.now(UTC)) is not None
    if not is_time and (path.suffix or path.name != solve):
        raise BadInputError(solve, "there is no such file")  # ids have neither
    return asyncio.run(_fetch(solve, gang, bus))[1]


async def _fetch(solve: str, gang: str, bus: Connecting) -> tuple[SolveEntry, Recorded]:
    """Fetch the solve that is named, of those in which a gang was tried if one is."""
    async with bus.connect() as client:
        wanted = await SolveFilter.of(client, gang)
        entry = await find_solve(client, solve, wanted)
        return entry, await fetch_solve(client, entry)


def print_replay(result: ReplayResult, at: str) -> None:
    """Print what solving again showed, for people."""
    verdict = {
        True: "same bytes",
        False: "different bytes",
        None: "no answer was recorded to compare with",
    }[result.same_bytes]
    when = f" of {show_time(at)}" if at else ""
    say(f"solve {result.solve}{when}: {verdict}")
    say(f"  decision {result.replayed_decision}")
    if not result.same_versions:
        say("  solved with other versions: bytes may differ, objectives may not")
    if not result.same_platform:
        say("  solved on another platform: bytes may differ")
    for line in result.differences:
        say(f"  {line}")
