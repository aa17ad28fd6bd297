"""`moorings what-if`: what would be decided if something were otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.counts import counted
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.quantity import Quantity, QuantityError
from moorings.cli.completing import complete_gangs
from moorings.cli.completing_solves import complete_replayed
from moorings.cli.connecting import Connecting
from moorings.cli.documents import read_gangs, read_objects
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Files, Output, Progress, Server, StateDir
from moorings.cli.output import Format, notify, show, show_progress, show_table
from moorings.errors import UsageError
from solver.cel.evaluator import SelectorEvaluator
from solver.service.garbage import collecting_between_batches

if TYPE_CHECKING:
    from moorings.what_if.answer import GangDifference, GangFate, WhatIfAnswer
    from moorings.what_if.changes import Changes

COLUMNS = ("gang", "now", "what if", "why")
NOWHERE = "<none>"
MOST_ADDED = 1000
"""Nodes that may be added."""


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command("what-if")(what_if)


def what_if(
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Gangs that are submitted; of files, anything that `plan` reads.",
            show_default=False,
        ),
    ] = None,
    without_node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="A node that is gone, with its devices.",
            show_default=False,
        ),
    ] = None,
    taint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DRIVER/POOL/DEVICE",
            help="A device that nobody new may have.",
            show_default=False,
        ),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GANG",
            help="A gang that ends: its name or namespace/name.",
            autocompletion=complete_gangs,
            show_default=False,
        ),
    ] = None,
    add_nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=COUNT",
            help="So many nodes more like one, with all their devices free.",
            show_default=False,
        ),
    ] = None,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE/RESOURCE=N",
            help="The nominal quota of a ClusterQueue; with several flavors "
            "QUEUE/FLAVOR/RESOURCE=N.",
            show_default=False,
        ),
    ] = None,
    filename: Files = None,
    solve: Annotated[
        str,
        typer.Option(
            metavar="ID|TIME|FILE",
            help="Ask about a recorded solve, as `replay` reads it; --free leaves out "
            "gangs of its batch.",
            autocompletion=complete_replayed,
            show_default=False,
        ),
    ] = "",
    patience: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long a gang waits before devices are kept for it: the solver's "
            "SOLVER_PATIENCE.",
        ),
    ] = "30m",
    every: Annotated[
        bool,
        typer.Option(
            "--all", "-a", help="List also the gangs for which nothing changes."
        ),
    ] = False,
    progress: Progress = False,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Forecast decisions if gangs came or ended, nodes, devices or quotas changed.

    Decides what waits as things are, and as they would be, by the code of the solver,
    and shows both. Each option may be repeated. Nothing is changed, and the solver of
    the cluster has no work with it. Exit 0 only if all gangs whose fate differs then
    have devices.

    moorings what-if --add gang.yaml --free team-a/train

    moorings what-if -f cluster/ --without-node gpu-7
    """
    # OR-Tools is slow to import.
    from moorings.what_if.changes import Changes  # noqa: PLC0415

    changes = Changes(
        without_nodes=tuple(map(NodeName, without_node or ())),
        taint=tuple(map(_read_device, taint or ())),
        free=tuple(free or ()),
        add_nodes=dict(_read_counts(add_nodes or [])),
        quotas=dict(_read_quotas(quota or [])),
    )
    if changes == Changes() and not add:
        raise UsageError("what-if needs a change, such as --add FILE or --free GANG")
    if solve and (filename or add):
        raise UsageError("--solve takes neither -f FILE nor --add FILE")
    with (
        SelectorEvaluator() as evaluator,
        collecting_between_batches(),
        show_progress("deciding as it is and as it would be", asked=progress),
    ):
        bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
        if solve:
            answer = _ask_solve(bus, solve, changes)
        elif filename:
            answer = _ask_files(evaluator, filename, add or [], changes)
        else:
            answer = _ask_bus(evaluator, bus, add or [], changes, patience)
    if output is Format.TABLE:
        _print(answer, every=every)
    else:
        show(answer, output, (), ())
    raise typer.Exit(ExitCode.YES if answer.is_yes else ExitCode.NO)


def _ask_solve(bus: Connecting, solve: str, changes: Changes) -> WhatIfAnswer:
    from moorings.cli.recorded_solves import load_recorded  # noqa: PLC0415  # slow to import
    from moorings.what_if.recorded import answer_recorded  # noqa: PLC0415  # imports OR-Tools

    return answer_recorded(load_recorded(solve, "", bus), changes)


def _ask_files(
    evaluator: SelectorEvaluator, files: list[str], add: list[str], changes: Changes
) -> WhatIfAnswer:
    from moorings.plan.decide import Planner, PlanOptions  # noqa: PLC0415  # imports OR-Tools
    from moorings.what_if.files import plan_what_if  # noqa: PLC0415  # likewise

    found = read_objects(files)
    added = read_objects(add) if add else None
    if found.failed or (added is not None and added.failed):
        raise typer.Exit(ExitCode.ERROR)
    objects = [] if added is None else added.objects
    planner = Planner(evaluator)
    return plan_what_if(planner, found.objects, objects, changes, PlanOptions())


def _ask_bus(
    evaluator: SelectorEvaluator,
    bus: Connecting,
    add: list[str],
    changes: Changes,
    patience: str,
) -> WhatIfAnswer:
    from moorings.what_if.live import ask_live  # noqa: PLC0415  # imports OR-Tools
    from solver.timeline.patience import read_patience  # noqa: PLC0415  # likewise

    gangs = [gang for _, gang in read_gangs(add)] if add else []
    try:
        patience_s = read_patience(patience)
    except ValueError as error:
        raise UsageError(f"--patience {patience!r}: {error}") from error

    async def run() -> WhatIfAnswer:
        async with bus.connect() as client:
            return await ask_live(
                client, changes, gangs, evaluator.evaluate, patience_s
            )

    return asyncio.run(run())


def _read_device(text: str) -> DeviceID:
    """Read a device by driver, pool and name, of which the pool may have slashes.

    Raises:
        UsageError: it is none.
    """
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    if not (driver and pool and device):
        raise UsageError(f"--taint {text!r}: write DRIVER/POOL/DEVICE")
    return DeviceID(DriverName(driver), PoolName(pool), DeviceName(device))


def _read_counts(texts: list[str]) -> Iterator[tuple[NodeName, int]]:
    for text in texts:
        like, _, count = text.partition("=")
        is_number = count.isascii() and count.isdigit() and len(count) <= len("1000")
        if not like or not is_number or not 1 <= int(count) <= MOST_ADDED:
            raise UsageError(
                f"--add-nodes {text!r}: write NODE=COUNT, {MOST_ADDED} at most"
            )
        yield NodeName(like), int(count)


def _read_quotas(texts: list[str]) -> Iterator[tuple[str, Quantity]]:
    for text in texts:
        name, _, amount = text.rpartition("=")
        if "/" not in name:
            raise UsageError(f"--quota {text!r}: write QUEUE/RESOURCE=N")
        try:
            yield name, Quantity.parse(amount)
        except QuantityError as error:
            raise UsageError(f"--quota {text!r}: {error}") from error


def _print(answer: WhatIfAnswer, *, every: bool) -> None:
    shown = [each for each in answer.gangs if every or each.differs]
    show_table(COLUMNS, map(_to_row, shown), "nothing would be decided otherwise")
    same = len(answer.gangs) - sum(each.differs for each in answer.gangs)
    if same and not every:
        stay = counted(same, "gang stays as it is", "gangs stay as they are")
        notify(f"{stay}; use --all")


def _to_row(each: GangDifference) -> tuple[str, ...]:
    why = each.after.reasons[:1] if each.after is not None else ()
    return (each.name, _describe(each.before), _describe(each.after), *(why or ("",)))


def _describe(fate: GangFate | None) -> str:
    return NOWHERE if fate is None else str(fate)
