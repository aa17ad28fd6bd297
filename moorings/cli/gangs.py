"""Commands that ask for something: submit, cancel, release."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import typer

from contracts.ids import GangUID
from contracts.messages import CancelGang, ReleaseGang
from moorings.cli.documents import read_gangs
from moorings.cli.get import show_gangs
from moorings.cli.options import Cluster, GangName, Namespace, Output, Server, server_of
from moorings.cli.output import (
    ExitCode,
    Format,
    console,
    notice,
    progress,
    show,
)
from moorings.client import Client, open_client
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


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(submit)
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
            show_gangs(records, output)
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
