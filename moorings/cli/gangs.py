"""Commands about gangs: submit, get, watch, explain, cancel, release."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from contracts import messages, subjects
from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.messages import CancelGang, GangAllocated, ReleaseGang
from moorings.cli.documents import read_gangs
from moorings.cli.options import Cluster, GangName, Namespace, Output, Server, server_of
from moorings.cli.output import (
    ExitCode,
    Format,
    age,
    console,
    notice,
    progress,
    show,
)
from moorings.client import Client, open_client
from moorings.local import inventories
from solver.snapshot.gangs import GangRecord

Files = Annotated[
    list[str],
    typer.Option(
        "--filename",
        "-f",
        help="File, folder or - (standard input) with Gangs; may be repeated.",
        show_default=False,
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is decided.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most.", min=0.1)]
WAITING = "waiting to be decided"


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(submit)
    app.command()(get)
    app.command()(watch)
    app.command()(explain)
    app.command()(cancel)
    app.command()(release)


def submit(
    filename: Files,
    wait: Wait = False,
    timeout: Timeout = 60.0,
    server: Server = "",
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Submit gangs; with --wait, exit 0 only when all of them are allocated."""

    async def run() -> int:
        gangs = read_gangs(filename)
        async with open_client(server_of(server), cluster) as client:
            uids: list[GangUID] = []
            for _, gang in gangs:
                uid, new = await client.submit(gang)
                uids.append(uid)
                if output is Format.TABLE:
                    word = "submitted" if new else "was submitted before"
                    console.print(f"gang/{gang.metadata.name} {word} ({uid})")
            if not wait:
                if output is not Format.TABLE:
                    show([{"uid": uid} for uid in uids], output, (), ())
                return ExitCode.YES
            with progress("waiting for decisions"):
                records = await _decided(client, uids, timeout)
            _show_gangs(records, output)
            allocated = all(record.placed is not None for record in records)
            return ExitCode.YES if allocated else ExitCode.NO

    raise typer.Exit(asyncio.run(run()))


async def _decided(
    client: Client, uids: list[GangUID], timeout_s: float
) -> list[GangRecord]:
    """Wait until all gangs have an answer, or the time is over."""
    wanted, deadline = set(uids), time.monotonic() + timeout_s
    while True:
        found = [record for record in await client.gangs() if record.uid in wanted]
        open_ones = [record for record in found if record.decision is None]
        if not open_ones or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.1)


def get(
    what: Annotated[
        str, typer.Argument(help="`gangs`, `nodes`, or one gang by name or uid.")
    ] = "gangs",
    namespace: Namespace = None,
    server: Server = "",
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Show gangs with phase, age and reason; or the nodes that agents announced."""

    async def run() -> int:
        async with open_client(server_of(server), cluster) as client:
            if what in ("node", "nodes"):
                await _show_nodes(client, output)
            elif what in ("gang", "gangs"):
                found = await client.gangs()
                _show_gangs(
                    [r for r in found if namespace in (None, r.namespace)], output
                )
            else:
                record = await client.gang(what, namespace)
                _show_gangs([record], output)
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


def _show_gangs(records: Iterable[GangRecord], output: Format) -> None:
    views = [view_of(record) for record in records]
    if not views and output is Format.TABLE:
        notice("no gangs")
        return
    columns = (
        "namespace",
        "name",
        "phase",
        "priority",
        "pods",
        "nodes",
        "age",
        "reason",
    )
    show(views, output, columns, ([view[c] for c in columns] for view in views))


def view_of(record: GangRecord) -> dict[str, Any]:
    """Say in one row how a gang is."""
    spec = record.submission.gang.spec if record.submission is not None else None
    decision = record.placed
    return {
        "namespace": record.namespace,
        "name": record.name,
        "uid": record.uid,
        "phase": str(record.phase),
        "priority": spec.priority if spec is not None else 0,
        "pods": sum(member.count for member in spec.members) if spec is not None else 0,
        "nodes": len({member.node for member in decision.members}) if decision else 0,
        "attempt": record.attempt,
        "age": age(_age_s(record)),
        "reason": str(record.reasons[0]) if record.reasons else _why(record),
    }


def _why(record: GangRecord) -> str:
    if record.decision is None:
        return WAITING
    return "ending" if record.ending is not None else ""


def _age_s(record: GangRecord) -> float:
    text = record.submission.submitted_at if record.submission is not None else ""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    except ValueError:
        return 0.0


async def _show_nodes(client: Client, output: Format) -> None:
    """Show the announced nodes: devices by driver, and how many are held."""
    held: Counter[str] = Counter()
    for record in await client.gangs():
        decision = record.placed
        for member in decision.members if decision is not None else ():
            for claim in member.claims:
                held[member.node] += len(claim.allocation.devices.results)
    found = await inventories(client)
    views = [
        {
            "name": name,
            "devices": sum(len(pool.devices) for pool in message.pools),
            "held": held[name],
            "pools": len(message.pools),
            "labels": dict(message.labels),
        }
        for name, message in sorted(found.items())
    ]
    columns = ("name", "devices", "held", "pools")
    show(views, output, columns, ([view[c] for c in columns] for view in views))


def watch(
    server: Server = "",
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
    count: Annotated[
        int, typer.Option(help="End after so many events; 0: never.", min=0)
    ] = 0,
) -> None:
    """Follow decisions as they happen, until Ctrl-C."""

    async def run() -> int:
        stop, seen = asyncio.Event(), 0
        async with open_client(server_of(server), cluster) as client:
            wanted = [subjects.wildcard("dec", client.cluster)]
            async for page in client.bus.follow("DEC", wanted, stop, start="new"):
                for received in page.messages:
                    if output is Format.TABLE:
                        _print_event(received.data)
                    else:
                        typer.echo(received.data.decode())
                    seen += 1
                    if seen == count:
                        return ExitCode.YES
        return ExitCode.YES

    try:
        raise typer.Exit(asyncio.run(run()))
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.YES) from None


def _print_event(data: bytes) -> None:
    message = messages.DECISION.decode(data)
    kind, name = type(message).__name__, f"{message.namespace}/{message.name}"
    more = ""
    match message:
        case GangAllocated():
            nodes = len({member.node for member in message.members})
            more = f"{len(message.members)} pods on {nodes} nodes"
        case (
            messages.GangPending(reasons=reasons)
            | messages.GangRejected(reasons=reasons)
        ):
            more = str(reasons[0]) if reasons else ""
        case messages.GangReleased():
            more = str(message.outcome)
    console.print(f"{kind:<14} {name:<30} {more}", markup=False)


def explain(
    gang: GangName,
    namespace: Namespace = None,
    server: Server = "",
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Say where a gang is and what it has, or why it waits and what was counted."""

    async def run() -> int:
        async with open_client(server_of(server), cluster) as client:
            record = await client.gang(gang, namespace)
        explained = explained_of(record)
        if output is not Format.TABLE:
            show(explained, output, (), ())
        else:
            print_explained(explained)
        return ExitCode.YES if record.phase is not GangPhase.REJECTED else ExitCode.NO

    raise typer.Exit(asyncio.run(run()))


def explained_of(record: GangRecord) -> dict[str, Any]:
    """Say all that is known of a gang."""
    decision = record.placed
    return {
        **view_of(record),
        "reasons": [
            {
                "rule": str(reason.rule),
                "subject": reason.subject,
                "field": reason.field,
                "message": reason.message,
                "facts": reason.facts,
            }
            for reason in record.reasons
        ],
        "members": [
            {
                "member": member.member,
                "index": member.index,
                "node": member.node,
                "devices": [
                    str(result.device_id)
                    for claim in member.claims
                    for result in claim.allocation.devices.results
                ],
            }
            for member in (decision.members if decision is not None else ())
        ],
        "solve": getattr(record.decision, "solve", ""),
    }


def print_explained(explained: dict[str, Any], most: int = 20) -> None:
    """Print what is known of a gang, for people."""
    phase, attempt = explained["phase"], explained["attempt"]
    name = f"{explained['namespace']}/{explained['name']}"
    console.print(f"{name}: {phase} (attempt {attempt}, solve {explained['solve']})")
    for reason in explained["reasons"]:
        where = f" ({reason['subject']})" if reason["subject"] else ""
        field = f" {reason['field']}" if reason["field"] else ""
        console.print(
            f"  {reason['rule']}{field}{where}: {reason['message']}", markup=False
        )
        facts = ", ".join(f"{key} {value}" for key, value in reason["facts"].items())
        if facts:
            console.print(f"    counted: {facts}", markup=False)
    for member in explained["members"][:most]:
        devices = ", ".join(device.rsplit("/", 1)[-1] for device in member["devices"])
        console.print(
            f"  {member['member']}/{member['index']} on {member['node']}: {devices}"
        )
    hidden = len(explained["members"]) - most
    if hidden > 0:
        console.print(f"  ... and {hidden} more (-o json shows all)")


def cancel(
    gang: GangName,
    namespace: Namespace = None,
    server: Server = "",
    cluster: Cluster = "local",
) -> None:
    """Say that a gang is not wanted any more, allocated or not."""
    _command(gang, namespace, server, cluster, CancelGang)


def release(
    gang: GangName,
    namespace: Namespace = None,
    server: Server = "",
    cluster: Cluster = "local",
) -> None:
    """Say that a gang's work is done; its devices are free again."""
    _command(gang, namespace, server, cluster, ReleaseGang)


def _command(
    gang: str,
    namespace: str | None,
    server: str,
    cluster: str,
    kind: type[CancelGang | ReleaseGang],
) -> None:
    async def run() -> int:
        async with open_client(server_of(server), cluster) as client:
            record = await client.gang(gang, namespace)
            if record.phase.is_terminal:
                notice(f"gang/{record.name} is {record.phase} already")
                return ExitCode.NO
            await client.command(
                kind(cluster=client.cluster, namespace=record.namespace, uid=record.uid)
            )
            word = "cancelled" if kind is CancelGang else "released"
            console.print(f"gang/{record.name} {word}")
        return ExitCode.YES

    raise typer.Exit(asyncio.run(run()))
