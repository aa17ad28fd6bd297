"""Commands that ask for something: submit, cancel, release."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.counts import counted
from contracts.gang import Gang
from contracts.ids import GangUID, object_key
from contracts.ids import Namespace as NamespaceName
from contracts.lifecycle import GangRecord
from contracts.messages import CancelGang, ReleaseGang
from moorings.cli.completing import complete_gangs
from moorings.cli.connecting import connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.get import show_gangs
from moorings.cli.known import check_cluster, fetch_solvers, notify_silence
from moorings.cli.options import (
    Cluster,
    Namespace,
    Output,
    Server,
    StateDir,
)
from moorings.cli.output import Format, notify, say, show, show_progress
from moorings.errors import CannotReadError
from moorings.views.names import tell_apart

if TYPE_CHECKING:
    from moorings.bus_client import Client

Files = Annotated[
    list[str],
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="File, folder or - (standard input) with Gangs; may be repeated.",
        show_default=False,
    ),
]
GangNames = Annotated[
    list[str],
    typer.Argument(
        help="Gangs by name, namespace/name, uid or start of the uid.",
        show_default=False,
        autocompletion=complete_gangs,
    ),
]
Command = Callable[..., None]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until all gangs are decided.")]
Timeout = Annotated[
    float, typer.Option(metavar="SEC", help="How long to wait.", min=0.1)
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(submit)
    text = "Cancel gangs that are no longer wanted, allocated or not."
    app.command("cancel", help=text)(_make_command(CancelGang, "cancelled"))
    text = "Release gangs whose work is done; their devices become free."
    app.command("release", help=text)(_make_command(ReleaseGang, "released"))


def submit(
    filename: Files,
    wait: Wait = False,
    timeout: Timeout = 60.0,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
) -> None:
    """Submit gangs; with --wait, exit 0 only when all of them are allocated."""
    from moorings.cli.documents import read_gangs  # noqa: PLC0415  # slow to import

    submitted: list[GangUID] = []

    async def run() -> int:
        gangs = read_gangs(filename)
        async with connect(server, state_dir, cluster, "platform") as client:
            solvers = await fetch_solvers(client)
            check_cluster(client, solvers)
            await _warn_of_namesakes(client, [gang for _, gang in gangs])
            for _, gang in gangs:
                submitted.append(await _submit_gang(client, gang, output))
            is_told = notify_silence(client, solvers)
            if not wait:
                if output is not Format.TABLE:
                    show([{"uid": uid} for uid in submitted], output, (), ())
                return ExitCode.YES
            with show_progress("waiting for decisions"):
                await _wait_answered(client, submitted, gangs, timeout)
            records = [r for r in await client.fetch_gangs() if r.uid in submitted]
            waiting = sum(not record.is_answered for record in records)
            if waiting:
                notify(f"{counted(waiting, 'gang')} not decided within {timeout:g} s")
            if waiting and not is_told:
                notify_silence(client, await fetch_solvers(client))
            show_gangs(records, output)
            allocated = all(record.placed is not None for record in records)
            return ExitCode.YES if allocated else ExitCode.NO

    try:
        code = asyncio.run(run())
    except KeyboardInterrupt:
        if submitted:
            notify("the gangs stay submitted; `moorings cancel` cancels them")
        raise
    raise typer.Exit(code)


def find_namesakes(gangs: Iterable[Gang]) -> list[str]:
    """Return `namespace/name` of what is several gangs: of different uids, or none."""
    uids: dict[str, list[str]] = {}
    for gang in gangs:
        meta = gang.metadata
        known = uids.setdefault(object_key(meta.namespace, meta.name), [])
        if not meta.uid or meta.uid not in known:
            known.append(meta.uid)
    return [name for name, known in uids.items() if len(known) > 1]


async def _warn_of_namesakes(client: Client, gangs: Collection[Gang]) -> None:
    """Warn of gangs with the name of another unfinished one: both stay."""
    for name in find_namesakes(gangs):
        notify(f"several of these gangs are named {name}; use uids to tell them apart")
    try:
        records = await client.fetch_gangs()
    except CannotReadError:
        return  # who may only submit is not told
    for gang in gangs:
        meta = gang.metadata
        key = (meta.namespace or "default", meta.name)
        for record in records:
            is_same = (record.namespace, record.name) == key
            if is_same and record.uid != meta.uid and not record.phase.is_terminal:
                notify(
                    f"another gang is named {meta.name}, too: "
                    f"{tell_apart(record)}; use uids to tell them apart"
                )


async def _submit_gang(client: Client, gang: Gang, output: Format) -> GangUID:
    uid, is_new = await client.submit(gang)
    if output is Format.TABLE:
        word = "submitted" if is_new else "was already submitted"
        say(f"gang/{gang.metadata.name} {word} ({uid})")
    return uid


async def _wait_answered(
    client: Client,
    uids: Collection[GangUID],
    gangs: Iterable[tuple[str, Gang]],
    timeout_s: float,
) -> None:
    """Wait until all gangs have an answer, or the time is over."""
    from moorings.answers import Answers  # noqa: PLC0415  # slow to import

    answers = Answers(client)
    namespaces = {NamespaceName(g.metadata.namespace or "default") for _, g in gangs}
    async with answers.follow(namespaces):
        await answers.wait_until(lambda: answers.are_all_answered(uids), timeout_s)


async def find_each(
    client: Client, names: Iterable[str], namespace: str | None
) -> list[GangRecord]:
    """Find gangs by name or uid, in this order; one that is named twice once.

    Raises:
        UnknownNameError: there is none of a name, or more than one.
    """
    found = [await client.find_gang(name, namespace) for name in names]
    return list({record.key: record for record in found}.values())


def _make_command(kind: type[CancelGang | ReleaseGang], done: str) -> Command:
    """Make a command that says one thing about a gang; `done` is what it then is."""

    def command(
        gangs: GangNames,
        namespace: Namespace = None,
        server: Server = "",
        state_dir: StateDir = None,
        cluster: Cluster = "local",
    ) -> None:
        async def run() -> int:
            async with connect(server, state_dir, cluster, "platform") as client:
                # All are found before anything is said of one.
                records = await find_each(client, gangs, namespace)
                for record in records:
                    if record.phase.is_terminal:
                        told = f"gang/{record.name} is already {record.phase}"
                        notify(f"{told} ({record.uid})")
                        continue
                    message = kind(
                        cluster=client.cluster,
                        namespace=record.namespace,
                        uid=record.uid,
                    )
                    await client.send_command(message)
                    say(f"gang/{record.name} {done}")
            over = any(record.phase.is_terminal for record in records)
            return ExitCode.NO if over else ExitCode.YES

        raise typer.Exit(asyncio.run(run()))

    return command
