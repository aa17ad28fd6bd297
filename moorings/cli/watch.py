"""The command that follows what is decided, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer

from contracts.ids import GangKey
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    ClaimsReleased,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    PodWritten,
)
from contracts.topics import CONFIRMATIONS, DECISIONS, Topic
from moorings.cli.options import Cluster, Namespace, Output, Server, StateDir, connect
from moorings.cli.output import ExitCode, Format, notify, say
from moorings.client import Client
from runtime.waits import together
from runtime.wire import Incoming

MOST_PODS = 3
"""Pods that are named on a line."""


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(watch)


def watch(
    namespace: Namespace = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
    count: Annotated[
        int, typer.Option(help="End after so many events; 0: never.", min=0)
    ] = 0,
) -> None:
    """Follow what is decided and written as it happens, until Ctrl-C."""

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            await Watch(client, namespace, output, count).run()
        return ExitCode.YES

    try:
        raise typer.Exit(asyncio.run(run()))
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.YES) from None


class Watch:
    """One watch: a line for each decision and each confirmation, from now on."""

    def __init__(
        self, client: Client, namespace: str | None, output: Format, count: int
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._output = output
        self._remaining = count or -1
        self._stop = asyncio.Event()
        self._names: dict[GangKey, str] = {}

    async def run(self) -> None:
        """Print events until there were enough, from two streams side by side."""
        await together((self._follow(DECISIONS), self._follow(CONFIRMATIONS)))

    async def _follow(self, topic: Topic[Any]) -> None:
        batches = self._client.bus.read(
            topic,
            self._client.cluster,
            stop=self._stop,
            start="new",
            survives_restart=True,
        )
        async for batch in batches:
            for refused in batch.refused:
                notify(f"left out, as it cannot be read: {refused.subject}")
            for incoming in batch.messages:
                await self._print_event(incoming)
                if self._remaining == 0:
                    self._stop.set()
                    return

    async def _print_event(
        self, incoming: Incoming[DecisionMessage | ConfirmationMessage]
    ) -> None:
        message = incoming.message
        if message is None:
            return
        if self._namespace not in (None, message.namespace):
            return
        if self._output is Format.TABLE:
            name = await self._find_name(message)
            line = f"{type(message).__name__:<17} {name:<30} {describe(message)}"
            say(line.rstrip())
        else:
            say(json.dumps(json.loads(incoming.data)))
        self._remaining -= 1

    async def _find_name(self, message: DecisionMessage | ConfirmationMessage) -> str:
        """Return the gang's name, which is in decisions and not in confirmations."""
        if isinstance(message, DecisionMessage):
            self._names[message.key] = message.name
        elif message.key not in self._names:
            last = await self._client.bus.read_last(DECISIONS, *message.address)
            if last is not None and last.message is not None:
                self._names[message.key] = last.message.name
        name = self._names.get(message.key) or message.uid
        return f"{message.namespace}/{name}"


def describe(message: DecisionMessage | ConfirmationMessage) -> str:
    """Return in a few words what a message says of its gang."""
    match message:
        case GangAllocated():
            nodes = len({member.node for member in message.members})
            return f"{len(message.members)} pods on {nodes} nodes"
        case GangPending(reasons=reasons) | GangRejected(reasons=reasons):
            return str(reasons[0]) if reasons else ""
        case GangReleased():
            return str(message.outcome)
        case AllocationWritten(pods=pods):
            hidden = len(pods) - MOST_PODS
            words = [*map(_describe_pod, pods[:MOST_PODS])]
            return "; ".join([*words, f"and {hidden} more"] if hidden > 0 else words)
        case AllocationRefused(reason=reason) | AllocationLost(reason=reason):
            return reason
        case GatesOpened() | ClaimsReleased():
            return ""


def _describe_pod(pod: PodWritten) -> str:
    """Name a pod and its claims as kubectl does."""
    claims = " ".join(f"resourceclaim/{name}" for name in pod.claims.values())
    return f"pod/{pod.pod} {claims}".rstrip()
