"""`moorings defragment`: which gangs to move so that nodes are free, or a gang fits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.counts import counted
from contracts.ids import ClusterName
from moorings.bus_client import make_submission
from moorings.cli.completing import complete_gangs
from moorings.cli.connecting import Connecting
from moorings.cli.documents import read_gangs, read_objects
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Files, Output, Progress, Server, StateDir
from moorings.cli.output import Format, notify, say, show, show_progress, show_table
from moorings.errors import UsageError
from solver.cel.evaluator import SelectorEvaluator
from solver.service.garbage import collecting_between_batches

if TYPE_CHECKING:
    from moorings.what_if.moves import Aim, GangMove, MovedPod, MovesPlan

COLUMNS = ("step", "gang", "leaves", "goes to")
MOST_NODES = 10_000
"""Nodes that may be asked for."""


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command("defragment")(defragment)


def defragment(
    free_nodes: Annotated[
        int,
        typer.Option(
            metavar="COUNT",
            min=0,
            max=MOST_NODES,
            help="So many whole nodes are to be free: those that are free already "
            "count.",
            show_default=False,
        ),
    ] = 0,
    wanted: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="GANG|FILE",
            help="A gang is to fit: one that waits, by its name or namespace/name, or "
            "one of a file.",
            autocompletion=complete_gangs,
            show_default=False,
        ),
    ] = "",
    filename: Files = None,
    progress: Progress = False,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Plan the fewest gangs to move so that whole nodes are free, or a gang fits.

    Shows which gangs, where to, and in what order: each goes to devices that are free
    at its step, its own among them. It is a plan: nothing is moved. Exit 0 only if one
    was found.

    moorings defragment --free-nodes 2

    moorings defragment -f cluster/ --for team-a/train -o json
    """
    if bool(free_nodes) == bool(wanted):
        raise UsageError("defragment needs --free-nodes COUNT or --for GANG|FILE")
    aim = _read_aim(free_nodes, wanted, ClusterName(cluster))
    bus = Connecting(server=server, state_dir=state_dir, cluster=cluster)
    with (
        SelectorEvaluator() as evaluator,
        collecting_between_batches(),
        show_progress("looking for the fewest moves", asked=progress),
    ):
        if filename:
            plan = _ask_files(evaluator, filename, aim)
        else:
            plan = _ask_bus(evaluator, bus, aim)
    if output is Format.TABLE:
        _print(plan, wanted)
    else:
        show(plan, output, (), ())
    raise typer.Exit(ExitCode.YES if plan.is_found else ExitCode.NO)


def _read_aim(free_nodes: int, wanted: str, cluster: ClusterName) -> Aim:
    from moorings.what_if.moves import Aim  # noqa: PLC0415  # imports OR-Tools

    if not wanted or not Path(wanted).is_file():
        return Aim(free_nodes=free_nodes, waits=wanted)
    gangs = read_gangs([wanted])
    if len(gangs) > 1:
        many = counted(len(gangs), "gang")
        raise UsageError(f"--for {wanted}: it has {many}; write one")
    ((_, gang),) = gangs
    return Aim(added=make_submission(gang, cluster, "what-if-1"))


def _ask_files(evaluator: SelectorEvaluator, files: list[str], aim: Aim) -> MovesPlan:
    from moorings.what_if.files import plan_file_moves  # noqa: PLC0415  # imports OR-Tools

    found = read_objects(files)
    if found.failed:
        raise typer.Exit(ExitCode.ERROR)
    return plan_file_moves(found.objects, aim, evaluator.evaluate)


def _ask_bus(evaluator: SelectorEvaluator, bus: Connecting, aim: Aim) -> MovesPlan:
    from moorings.what_if.live import plan_live_moves  # noqa: PLC0415  # imports OR-Tools

    async def run() -> MovesPlan:
        async with bus.connect() as client:
            return await plan_live_moves(client, aim, evaluator.evaluate)

    return asyncio.run(run())


def _print(plan: MovesPlan, wanted: str) -> None:
    if not plan.is_found:
        known = "no moves are enough" if plan.proven else "no moves were found"
        more = "" if plan.proven else f"; at least {plan.at_least} are needed"
        notify(f"{known}{more}")
        return
    rows = (_to_row(number, step) for number, step in enumerate(plan.steps, start=1))
    show_table(COLUMNS, rows, "nobody needs to move")
    if wanted:
        say(f"then {wanted} fits: {_count(p.node for p in plan.places)}")
    else:
        say(f"free then: {', '.join(plan.nodes)}")
    if plan.steps and plan.proven:
        say("proven: no fewer moves are enough")
    elif plan.steps:
        say(f"not proven: at least {plan.at_least} moves are needed")


def _to_row(number: int, step: GangMove) -> tuple[str, ...]:
    return (str(number), step.gang, _list_left(step.pods), _list_places(step.pods))


def _list_left(pods: Iterable[MovedPod]) -> str:
    return _count(pod.leaves for pod in pods)


def _list_places(pods: Iterable[MovedPod]) -> str:
    """List the devices that each node gives, without driver and pool."""
    by_node: dict[str, list[str]] = {}
    for pod in pods:
        names = (device.rpartition("/")[2] for device in pod.devices)
        by_node.setdefault(pod.node, []).extend(names)
    shown = (
        f"{node} ({', '.join(devices)})" if devices else node
        for node, devices in sorted(by_node.items())
    )
    return "; ".join(shown)


def _count(nodes: Iterable[str]) -> str:
    """List nodes, each with its pods where it has several."""
    counts = sorted(Counter(nodes).items())
    return ", ".join(node if n == 1 else f"{node} x{n}" for node, n in counts)
