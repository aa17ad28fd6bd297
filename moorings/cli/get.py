"""Commands that show how things are: get, explain."""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from contracts.gang import GangPhase
from contracts.lifecycle import GangRecord
from moorings.cli.options import Cluster, Namespace, Output, Server, StateDir, connect
from moorings.cli.output import ExitCode, Format, notify, show
from moorings.cli.solves import print_solves
from moorings.cli.views import (
    NONE,
    explain_gang,
    print_explanation,
    view_gang,
    view_pods,
)
from moorings.client import Client
from moorings.errors import UnknownNameError, UsageError
from moorings.recorded import find_solve, list_solves

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
POD_COLUMNS = ("namespace", "name", "gang", "member", "node", "devices", "claims")
NODE_COLUMNS = ("name", "devices", "held", "pools")
KINDS = {
    **dict.fromkeys(("gang", "gangs", "gangs.moorings.dev"), "gangs"),
    **dict.fromkeys(("pod", "pods", "po"), "pods"),
    **dict.fromkeys(("node", "nodes", "no"), "nodes"),
    **dict.fromkeys(("solve", "solves"), "solves"),
}
"""What people call them, as they do with kubectl."""
NOT_YET = (
    "beside a cluster a gang is here once all its pods and claims are: until then"
    " `kubectl describe pod` says what it waits for"
)


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(get)
    app.command()(explain)


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
    kinds = ", ".join(sorted(set(KINDS.values())))
    raise UsageError(f"get: no {what!r} here; there are {kinds}")


def get(
    what: Annotated[
        str,
        typer.Argument(
            help="`gangs`, `pods`, `nodes` or `solves`; or a gang by name or uid.",
            autocompletion=lambda: sorted(set(KINDS.values())),
        ),
    ] = "gangs",
    name: Annotated[
        str | None, typer.Argument(help="Only the one of this name.")
    ] = None,
    namespace: Namespace = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Show gangs, their pods that have devices, nodes of agents, or recorded solves."""
    kind, name = parse_target(what, name)

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            match kind:
                case "pods":
                    await _show_pods(client, name, namespace, output)
                case "nodes":
                    await _show_nodes(client, name, output)
                case "solves" if name is not None:
                    print_solves([await find_solve(client, name)], output)
                case "solves":
                    print_solves(await list_solves(client), output)
                case _ if name is not None:
                    records = await client.find_gangs(name, namespace)
                    show_gangs(_select_namespace(records, namespace), output)
                case _:
                    records = await client.fetch_gangs()
                    show_gangs(_select_namespace(records, namespace), output)
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


def _select_namespace(
    records: Iterable[GangRecord], namespace: str | None
) -> list[GangRecord]:
    return [record for record in records if namespace in (None, record.namespace)]


def show_gangs(records: Iterable[GangRecord], output: Format) -> None:
    """Show gangs in a row each."""
    views = [view_gang(record) for record in records]
    if not views and output is Format.TABLE:
        notify("no gangs")
        return
    rows = ([view[c] for c in GANG_COLUMNS] for view in views)
    show(views, output, GANG_COLUMNS, rows)


async def _show_pods(
    client: Client, name: str | None, namespace: str | None, output: Format
) -> None:
    """Show where the pods of gangs are that have devices."""
    gangs = _select_namespace(await client.fetch_gangs(), namespace)
    records = [record for record in gangs if record.placed is not None]
    written = await client.fetch_written(records)
    views = [
        view
        for record in records
        for view in view_pods(record, written.get(record.uid))
    ]
    if name is not None:
        views = _find_views(views, "pod", name)
    if not views and output is Format.TABLE:
        notify("no pods of gangs that have devices")
        return
    rows = ([_to_cell(view[c]) for c in POD_COLUMNS] for view in views)
    show(views, output, POD_COLUMNS, rows)


def _to_cell(value: Any) -> str:
    if isinstance(value, list):
        value = ",".join(filter(None, value))
    return str(value) or NONE


async def _show_nodes(client: Client, name: str | None, output: Format) -> None:
    """Show the nodes that agents announce: devices, and how many are held."""
    held: Counter[str] = Counter()
    for record in await client.fetch_gangs():
        decision = record.placed
        for member in decision.members if decision is not None else ():
            for claim in member.claims:
                held[member.node] += len(claim.allocation.devices.results)
    announced = await client.fetch_inventories()
    views = [
        {
            "name": node,
            "devices": sum(len(pool.devices) for pool in message.pools),
            "held": held[node],
            "pools": len(message.pools),
            "labels": dict(message.labels),
        }
        for node, message in sorted(announced.items())
    ]
    if name is not None:
        views = _find_views(views, "node", name)
    if not views and output is Format.TABLE:
        notify("no nodes that node agents announce")
        return
    show(
        views, output, NODE_COLUMNS, ([view[c] for c in NODE_COLUMNS] for view in views)
    )


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


def explain(
    what: Annotated[
        str,
        typer.Argument(
            help="Name, namespace/name or uid of a gang; or pod/NAME.",
            show_default=False,
        ),
    ],
    namespace: Namespace = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Say where a gang is and what it has, or why it waits and what was counted.

    Several gangs may have one name, as when pods of a running one are replaced; each is
    explained, as a list with -o json.
    """
    kind, name = parse_target(what, None)
    if kind not in ("gangs", "pods") or name is None:
        raise UsageError(f"explain: {what!r} is no gang and no pod/NAME")

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            try:
                if kind == "pods":
                    records = await _find_gangs_of_pod(client, name, namespace)
                else:
                    records = await client.find_gangs(name, namespace)
            except UnknownNameError as error:
                singular = kind.removesuffix("s")
                raise UnknownNameError(singular, name, error.near, NOT_YET) from error
            written = await client.fetch_written(records)
        explanations = [explain_gang(r, written.get(r.uid)) for r in records]
        if output is Format.TABLE:
            for explanation in explanations:
                print_explanation(explanation)
        elif len(explanations) > 1:
            show(explanations, output, (), ())
        else:
            show(explanations[0], output, (), ())
        rejected = any(record.phase is GangPhase.REJECTED for record in records)
        return ExitCode.NO if rejected else ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


async def _find_gangs_of_pod(
    client: Client, name: str, namespace: str | None
) -> list[GangRecord]:
    """Find the gang whose claims were written for a pod; a lone pod names its own.

    Raises:
        UnknownNameError: there is none.
    """
    records = _select_namespace(await client.fetch_gangs(), namespace)
    written = await client.fetch_written(records)
    for record in reversed(records):
        message = written.get(record.uid)
        if message is not None and any(pod.pod == name for pod in message.pods):
            return [record]
    return await client.find_gangs(name, namespace)
