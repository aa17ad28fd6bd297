"""Recorded solves as commands fetch and print them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from contracts.counts import counted
from moorings.cli.connecting import Connecting
from moorings.cli.exit_codes import ExitCode
from moorings.cli.output import Format, say, show, show_table
from moorings.cli.views import NONE
from moorings.errors import BadInputError
from moorings.recorded import SolveEntry, SolveFilter, fetch_solve, find_solve
from moorings.views.reasons import share_reasons
from moorings.views.solves import view_entry, view_solve
from moorings.views.times import read_span, show_time
from solver.decision import DECISION
from solver.errors import RecordError
from solver.record import Recorded, load_export

if TYPE_CHECKING:
    from solver.replay import ReplayResult

SOLVE_COLUMNS = ("solve", "at", "status", "gangs", "allocated", "waiting", "ms")
BATCH_COLUMNS = ("gang", "priority", "pods", "answer", "reason")
TIER_COLUMNS = ("objective", "priority", "value", "bound")


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


def show_solve(solve: str, gang: str, bus: Connecting, output: Format) -> NoReturn:
    """Show a solve, and end the command."""
    entry, recorded = asyncio.run(fetch_named(solve, gang, bus))
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
        f"Gangs:    {view['gangs']}: {view['allocated']} allocated, "
        f"{view['pending']} waiting, {view['rejected']} rejected"
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


def load_recorded(solve: str, gang: str, bus: Connecting) -> Recorded:
    """Read a file, or fetch a solve by its id or its time."""
    path = Path(solve)
    if path.is_file():
        try:
            return load_export(path.read_bytes())
        except RecordError as error:
            raise BadInputError(solve, error.reason) from error
        except OSError as error:
            raise BadInputError(solve, str(error.strerror)) from error
    is_time = read_span(solve, datetime.now(UTC)) is not None
    if not is_time and (path.suffix or path.name != solve):
        raise BadInputError(solve, "there is no such file")  # ids have neither
    return asyncio.run(fetch_named(solve, gang, bus))[1]


async def fetch_named(
    solve: str, gang: str, bus: Connecting
) -> tuple[SolveEntry, Recorded]:
    """Fetch the solve that is named, of those in which a gang was tried if one is."""
    async with bus.connect() as client:
        wanted = await SolveFilter.of(client, gang)
        entry = await find_solve(client, solve, wanted)
        return entry, await fetch_solve(client, entry)
