"""The command that shows how things are: gangs, queues, nodes, devices, solves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.codec import to_builtins
from contracts.counts import counted
from contracts.labels import LabelSelector, does_match
from contracts.lifecycle import GangRecord
from contracts.topics import (
    GANG_TOPICS,
    HEALTH,
    INVENTORIES,
    REPORTS,
    SOLVES,
    STATE,
    Topic,
)
from moorings.cli.connecting import connect
from moorings.cli.device_filter import DeviceFilter
from moorings.cli.exit_codes import ExitCode
from moorings.cli.known import KnownGangs, fetch_known, unknown_gang
from moorings.cli.listing import (
    FORMS,
    ListForm,
    Listing,
    find_views,
    print_listing,
    watch_listing,
)
from moorings.cli.options import Cluster, Namespace, Server, StateDir
from moorings.cli.output import Format, say, show
from moorings.cli.selecting import parse_selector
from moorings.cli.views import NONE
from moorings.errors import UsageError
from moorings.stories import GangQuery, name_story
from moorings.views.gangs import is_recent, view_gang, view_pods, view_story
from moorings.views.reasons import share_reasons
from moorings.views.states import HEALTHS, STATES
from moorings.views.times import show_time

if TYPE_CHECKING:
    from moorings.bus_client import Client

WIDE_COLUMNS = ("place", "duration", "starts by", "ends by", "uid")
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
GANG = "gang.moorings.dev"
CLUSTER_QUEUE = "clusterqueue.kueue.x-k8s.io"
WATCHED: dict[str, tuple[Topic[Any], ...]] = {
    "gangs": (*GANG_TOPICS, REPORTS),
    "pods": (*GANG_TOPICS, STATE),
    "nodes": (*GANG_TOPICS, INVENTORIES, HEALTH, STATE),
    "devices": (*GANG_TOPICS, INVENTORIES, HEALTH, STATE),
    "queues": (*GANG_TOPICS, STATE),
    "solves": (SOLVES,),
}
"""Topics on which something is said where one of a kind changes."""
KINDS = {
    **dict.fromkeys(("gang", "gangs", "gangs.moorings.dev", GANG), "gangs"),
    **dict.fromkeys(("pod", "pods", "po"), "pods"),
    **dict.fromkeys(("node", "nodes", "no"), "nodes"),
    **dict.fromkeys(("device", "devices", "dev"), "devices"),
    **dict.fromkeys(
        ("queue", "queues", "cq", "clusterqueue", "clusterqueues", CLUSTER_QUEUE),
        "queues",
    ),
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


def parse_target(
    what: str, name: str | None, command: str = "get"
) -> tuple[str, str | None]:
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
    raise UsageError(f"{command}: unknown kind {what!r}; the kinds are {_list_kinds()}")


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
            help="`gangs`, `pods`, `queues`, `nodes`, `devices` or `solves`; or a gang "
            "by name.",
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
    selector: Annotated[
        str,
        typer.Option(
            "--selector",
            "-l",
            metavar="LABELS",
            help="Only gangs or nodes with these labels, such as app=train,tier!=test.",
            show_default=False,
        ),
    ] = "",
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Then print what changes, until Ctrl-C."),
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="How to print: table, wide, json, yaml, name, or "
            "jsonpath='{.items[*].name}'.",
            autocompletion=lambda: list(FORMS),
        ),
    ] = "table",
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
    """Show gangs, pods with devices, queues, nodes, devices, or recorded solves.

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
    if selector and kind not in ("gangs", "nodes"):
        raise UsageError(f"get: --selector is for gangs and nodes, not for {kind}")
    access = None
    if kubeconfig is not None:
        from moorings.local.cluster import read_access  # noqa: PLC0415  # slow to import

        access = read_access(kubeconfig, context)
    form, labels = ListForm.parse(output), parse_selector(selector)
    is_wide = form.kind == "wide"

    async def fetch(client: Client) -> Listing:
        match kind:
            case "pods":
                return await _list_pods(client, name, namespace)
            case "nodes":
                from moorings.cli.get_devices import list_nodes  # noqa: PLC0415  # slow to import

                return await list_nodes(client, name, wanted, labels, wide=is_wide)
            case "devices":
                from moorings.cli.get_devices import list_devices  # noqa: PLC0415  # slow to import

                return await list_devices(
                    client, name, wanted, wide=is_wide, access=access
                )
            case "queues":
                from moorings.cli.get_queues import list_queues  # noqa: PLC0415  # slow to import

                return await list_queues(client, name, wide=is_wide)
            case "solves":
                return await _list_solves(client, name)
            case _:
                return await _list_gangs(
                    client,
                    None if name is None else GangQuery.of(name, namespace),
                    namespace,
                    labels,
                    every=every,
                    wide=is_wide,
                    shares=not watch,
                    hints=hint_at_kinds(what, target),
                )

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            if watch:
                again = partial(fetch, client)
                await watch_listing(client, again, WATCHED[kind], form)
            print_listing(await fetch(client), form)
        return ExitCode.YES

    try:
        raise typer.Exit(asyncio.run(run()))
    except KeyboardInterrupt:
        if not watch:
            raise
        raise typer.Exit(ExitCode.YES) from None


async def _list_gangs(
    client: Client,
    wanted: GangQuery | None,
    namespace: str | None,
    selector: LabelSelector,
    *,
    every: bool,
    wide: bool,
    shares: bool,
    hints: Iterable[str],
) -> Listing:
    """List gangs: those that live, all, or the one of a name.

    `shares`: a reason that many of them have stands once, below the table.
    """
    known = await fetch_known(client)
    stories = [s for s in known.stories if namespace in (None, s.namespace)]
    if wanted is not None:
        wanted = wanted.among(record for s in stories for record in s.records)
        stories = [story for story in stories if wanted.is_in(story)]
        if not stories:
            raise unknown_gang(wanted, known.stories, *hints)
    views = [view_story(story, known.held) for story in stories]
    notices = list(known.notices)
    if wide:
        await _add_places(client, known, views, notices)
    names = list(map(name_story, stories))
    over = [n for n, s in zip(names, stories, strict=True) if not is_recent(s)]
    if every:
        over = []
    elif wanted is not None and len(over) == len(names):
        over.pop()  # of those that are over the last one is shown
    others = (
        name
        for name, view in zip(names, views, strict=True)
        if not does_match(selector, view["labels"])
    )
    hidden = frozenset((*over, *others))
    if over and wanted is None:
        notices.append(f"{counted(len(over), 'finished gang')} hidden; use --all")
    reasons = [view["reason"] for view in views]
    lines: list[str] = []
    if shares:
        shown = [number for number, name in enumerate(names) if name not in hidden]
        cells, lines = share_reasons([reasons[number] for number in shown])
        for number, cell in zip(shown, cells, strict=True):
            reasons[number] = cell
    where = f" in namespace {namespace}" if namespace else ""
    return Listing(
        what=GANG,
        names=names,
        views=views,
        columns=_gang_columns(wide=wide),
        rows=[
            _to_gang_row(v, r, wide=wide) for v, r in zip(views, reasons, strict=True)
        ],
        nothing=f"no unfinished gangs{where}" if over else f"no gangs{where}",
        below=lines,
        notices=notices,
        is_one=wanted is not None,
        hidden=hidden,
    )


def _gang_columns(*, wide: bool = False) -> tuple[str, ...]:
    return (*GANG_COLUMNS[:-1], *(WIDE_COLUMNS if wide else ()), GANG_COLUMNS[-1])


def _to_gang_row(view: dict[str, Any], reason: str, *, wide: bool = False) -> list[str]:
    columns = _gang_columns(wide=wide)[:-1]
    shown = {**view, "place": _write_place(view.get("place"))}
    starts_by, ends_by = (view["expectedStart"] or {}).get("time"), view["endsBy"]
    for column, time in (("starts by", starts_by), ("ends by", ends_by)):
        shown[column] = show_time(time) if time else ""
    return [*(_to_cell(shown[column]) for column in columns), _to_cell(reason)]


async def _add_places(
    client: Client,
    known: KnownGangs,
    views: Iterable[dict[str, Any]],
    notices: list[str],
) -> None:
    """Add to each row the place in line of its last submission, if that waits."""
    from moorings.cli.get_queues import fetch_places  # noqa: PLC0415  # slow to import

    records = {r.uid: r for story in known.stories for r in story.records}
    lines = await fetch_places(client, records.values(), notices)
    for view in views:
        record = records.get(view["uid"])
        view["place"] = None if record is None else lines.view(record.key)


def _write_place(place: dict[str, Any] | None) -> str:
    """Write a place in line: `3/12 of team-a`."""
    if place is None:
        return ""
    queue = f" of {place['queue']}" if place["queue"] else ""
    return f"{place['place']}/{place['waiting']}{queue}"


def show_gangs(records: Iterable[GangRecord], output: Format) -> None:
    """Print what was submitted."""
    views = [view_gang(record) for record in records]
    cells, lines = share_reasons([view["reason"] for view in views])
    rows = list(map(_to_gang_row, views, cells))
    show(views, output, GANG_COLUMNS, rows, "no gangs")
    for line in lines if output is Format.TABLE else ():
        say(line)


async def _list_solves(client: Client, name: str | None) -> Listing:
    from moorings.cli.recorded_solves import SOLVE_COLUMNS, to_row  # noqa: PLC0415  # slow to import
    from moorings.recorded import find_solve, list_solves  # noqa: PLC0415  # slow to import

    if name is None:
        entries = await list_solves(client)
    else:
        entries = [await find_solve(client, name)]
    return Listing(
        what="solve",
        names=[entry.opened.solve for entry in entries],
        views=[{"name": e.opened.solve, **to_builtins(e)} for e in entries],
        columns=SOLVE_COLUMNS,
        rows=[list(map(str, to_row(entry))) for entry in entries],
        nothing="no solves are recorded",
        is_one=name is not None,
    )


async def _list_pods(
    client: Client, name: str | None, namespace: str | None
) -> Listing:
    """List where the pods of gangs are that have devices."""
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
    if name is not None:
        views = find_views(views, "pod", name)
    where = f" in namespace {namespace}" if namespace else ""
    return Listing(
        what="pod",
        names=[
            f"{v['namespace']}/{v['gang']}/{v['member']}/{v['name']}" for v in views
        ],
        views=views,
        columns=POD_COLUMNS,
        rows=[[_to_cell(view[c]) for c in POD_COLUMNS] for view in views],
        nothing=f"no pods with devices{where}",
        notices=known.notices,
        is_one=name is not None,
    )


def _to_cell(value: Any) -> str:
    if isinstance(value, list):
        value = ",".join(filter(None, value))
    return str(value) or NONE
