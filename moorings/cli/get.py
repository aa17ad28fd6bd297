"""The command that shows how things are: gangs, pods, nodes, devices, solves."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from contracts.counts import counted
from contracts.lifecycle import GangRecord
from moorings.bus_client import Client
from moorings.cli.connecting import connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.get_devices import DeviceFilter, show_devices, show_nodes
from moorings.cli.known import fetch_known, unknown_gang
from moorings.cli.options import Cluster, Namespace, Server, StateDir
from moorings.cli.output import Format, ListFormat, notify, say, show
from moorings.cli.solves import print_solves
from moorings.cli.views import NONE
from moorings.errors import UnknownNameError, UsageError
from moorings.local.cluster import read_access
from moorings.recorded import find_solve, list_solves
from moorings.stories import GangQuery
from moorings.views.gangs import is_recent, view_gang, view_pods, view_story
from moorings.views.inventory import HEALTHS, STATES
from moorings.views.reasons import share_reasons

GANG_COLUMNS = (
    "namespace",
    "name",
    "phase",
    "priority",
    "pods",
    "nodes",
    "age",
    "reason",
)
POD_COLUMNS = (
    "namespace",
    "name",
    "gang",
    "member",
    "node",
    "devices",
    "claims",
    "status",
)
KINDS = {
    **dict.fromkeys(("gang", "gangs", "gangs.moorings.dev"), "gangs"),
    **dict.fromkeys(("pod", "pods", "po"), "pods"),
    **dict.fromkeys(("node", "nodes", "no"), "nodes"),
    **dict.fromkeys(("device", "devices", "dev"), "devices"),
    **dict.fromkeys(("solve", "solves"), "solves"),
}
"""Kinds by the names that kubectl's users type."""
OF_DEVICES: dict[str, Any] = {
    "rich_help_panel": "Nodes and devices",
    "show_default": False,
}


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(get)


def parse_target(what: str, name: str | None) -> tuple[str, str | None]:
    """Read `KIND`, `KIND NAME`, `KIND/NAME` or a gang's name, as kubectl would.

    Raises:
        UsageError: two words, of which the first is no kind.
    """
    kind, slash, rest = what.partition("/")
    if slash and name is None and kind in KINDS:
        return KINDS[kind], rest
    if what in KINDS:
        return KINDS[what], name
    if name is None:
        return "gangs", what
    raise UsageError(f"get: unknown kind {what!r}; the kinds are {_list_kinds()}")


def hint_at_kinds(what: str, target: tuple[str, str | None]) -> tuple[str, ...]:
    """Return a hint at the kinds where a word was read as a gang's name."""
    is_guessed = what not in KINDS and target[1] == what
    return (f"the kinds to get are {_list_kinds()}",) if is_guessed else ()


def _list_kinds() -> str:
    return ", ".join(sorted(set(KINDS.values())))


def get(
    what: Annotated[
        str,
        typer.Argument(
            help="`gangs`, `pods`, `nodes`, `devices` or `solves`; or a gang by name.",
            autocompletion=lambda: sorted(set(KINDS.values())),
        ),
    ] = "gangs",
    name: Annotated[
        str | None, typer.Argument(help="Only the one with this name.")
    ] = None,
    namespace: Namespace = None,
    everywhere: Annotated[
        bool,
        typer.Option("--all-namespaces", "-A", help="In all namespaces; the default."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Include finished gangs.")
    ] = False,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Annotated[
        ListFormat,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="How to print: table, wide, json or yaml.",
        ),
    ] = ListFormat.TABLE,
    node: Annotated[
        str, typer.Option(help="Only devices of this node.", **OF_DEVICES)
    ] = "",
    driver: Annotated[
        str, typer.Option(help="Only devices of this driver.", **OF_DEVICES)
    ] = "",
    pool: Annotated[
        str, typer.Option(help="Only devices of this pool.", **OF_DEVICES)
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            help=f"Only devices in this state: {', '.join(STATES).lower()}.",
            autocompletion=lambda: [state.lower() for state in STATES],
            **OF_DEVICES,
        ),
    ] = "",
    health: Annotated[
        str,
        typer.Option(
            help="Only devices whose agent reports them as "
            f"{', '.join(HEALTHS).lower()}.",
            autocompletion=lambda: [health.lower() for health in HEALTHS],
            **OF_DEVICES,
        ),
    ] = "",
    free: Annotated[
        bool,
        typer.Option(
            "--free", help="Only devices that can be allocated now.", **OF_DEVICES
        ),
    ] = False,
    held: Annotated[
        bool, typer.Option("--held", help="Only devices that are held.", **OF_DEVICES)
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Also devices of this cluster that Moorings does not allocate.",
            **OF_DEVICES,
        ),
    ] = None,
    context: Annotated[
        str,
        typer.Option(
            help="Context of the kubeconfig; default: its current one.", **OF_DEVICES
        ),
    ] = "",
) -> None:
    """Show gangs, pods with devices, nodes, devices, or recorded solves.

    Devices are those that Moorings may allocate: of node agents, and of the drivers
    that it owns. With --kubeconfig all others are shown, too.
    """
    if everywhere and namespace is not None:
        raise UsageError("get: --all-namespaces and --namespace exclude each other")
    kind, name = target = parse_target(what, name)
    wanted = DeviceFilter(
        node=node,
        driver=driver,
        pool=pool,
        state=state,
        health=health,
        free=free,
        held=held,
    )
    if wanted and kind not in ("nodes", "devices"):
        given = ", ".join(wanted.options)
        raise UsageError(f"get: {given} is for nodes and devices, not for {kind}")
    if (kubeconfig is not None or context) and kind != "devices":
        raise UsageError(f"get: --kubeconfig is for devices, not for {kind}")
    if context and kubeconfig is None:
        raise UsageError("get: --context needs --kubeconfig")
    access = None if kubeconfig is None else read_access(kubeconfig, context)
    wide, form = output is ListFormat.WIDE, output.plain

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            match kind:
                case "pods":
                    await _show_pods(client, name, namespace, form)
                case "nodes":
                    await show_nodes(client, name, wanted, form, wide=wide)
                case "devices":
                    await show_devices(
                        client, name, wanted, form, wide=wide, access=access
                    )
                case "solves" if name is not None:
                    print_solves([await find_solve(client, name)], form)
                case "solves":
                    print_solves(await list_solves(client), form)
                case _:
                    query = None if name is None else GangQuery.of(name, namespace)
                    await _show_stories(
                        client,
                        query,
                        namespace,
                        form,
                        every=every,
                        wide=wide,
                        hints=hint_at_kinds(what, target),
                    )
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


async def _show_stories(
    client: Client,
    wanted: GangQuery | None,
    namespace: str | None,
    output: Format,
    *,
    every: bool,
    wide: bool,
    hints: Iterable[str],
) -> None:
    """Show gangs: those that live, all, or the one of a name."""
    known = await fetch_known(client)
    stories = [s for s in known.stories if namespace in (None, s.namespace)]
    shown = stories
    if wanted is not None:
        wanted = wanted.among(record for s in stories for record in s.records)
        shown = [story for story in stories if wanted.is_in(story)]
        if not shown:
            raise unknown_gang(wanted, known.stories, *hints)
        shown = [story for story in shown if is_recent(story) or every] or shown[-1:]
    elif not every:
        shown = [story for story in stories if is_recent(story)]
    views = [view_story(story, known.held) for story in shown]
    known.notify_unread()
    hidden = len(stories) - len(shown)
    if hidden and wanted is None:
        notify(f"{counted(hidden, 'finished gang')} hidden; use --all")
    where = f" in namespace {namespace}" if namespace else ""
    nothing = f"no unfinished gangs{where}" if hidden else f"no gangs{where}"
    _show_gang_views(views, output, nothing, wide=wide)


def show_gangs(records: Iterable[GangRecord], output: Format) -> None:
    """Print what was submitted."""
    _show_gang_views([view_gang(record) for record in records], output, "no gangs")


def _show_gang_views(
    views: list[dict[str, Any]], output: Format, nothing: str, *, wide: bool = False
) -> None:
    """Print gangs; a reason that many of them have stands once below the table."""
    cells, lines = share_reasons([view["reason"] for view in views])
    columns = (*GANG_COLUMNS[:-1], *(("uid",) if wide else ()))
    rows = [
        [*(_to_cell(view[column]) for column in columns), _to_cell(cell)]
        for view, cell in zip(views, cells, strict=True)
    ]
    show(views, output, (*columns, GANG_COLUMNS[-1]), rows, nothing)
    for line in lines if output is Format.TABLE else ():
        say(line)


async def _show_pods(
    client: Client, name: str | None, namespace: str | None, output: Format
) -> None:
    """Show where the pods of gangs are that have devices."""
    known = await fetch_known(client)
    records = [
        record
        for story in known.stories
        if namespace in (None, story.namespace)
        for record in story.living
        if record.placed is not None
    ]
    written = await client.fetch_written(records)
    views = [
        view
        for record in records
        for view in view_pods(record, written.get(record.key), known.held)
    ]
    known.notify_unread()
    if name is not None:
        views = _find_views(views, "pod", name)
    rows = ([_to_cell(view[c]) for c in POD_COLUMNS] for view in views)
    where = f" in namespace {namespace}" if namespace else ""
    show(views, output, POD_COLUMNS, rows, f"no pods with devices{where}")


def _to_cell(value: Any) -> str:
    if isinstance(value, list):
        value = ",".join(filter(None, value))
    return str(value) or NONE


def _find_views(
    views: list[dict[str, Any]], what: str, name: str
) -> list[dict[str, Any]]:
    """Find what has just this name.

    Raises:
        UnknownNameError: nothing has.
    """
    matches = [view for view in views if view["name"] == name]
    if not matches:
        names = sorted({view["name"] for view in views})
        raise UnknownNameError(what, name, difflib.get_close_matches(name, names))
    return matches
