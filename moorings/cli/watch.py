"""The command that follows what is decided, and what becomes of it."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from contracts.asyncapi import messages_of
from contracts.ids import GangKey, GangUID
from contracts.messages import ConfirmationMessage, DecisionMessage
from contracts.topics import CONFIRMATIONS, DECISIONS, Topic
from moorings.cli.completing import complete_gangs
from moorings.cli.connecting import connect
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Cluster, Namespace, Output, Server, StateDir
from moorings.cli.output import Format, notify, say
from moorings.errors import UsageError
from moorings.stories import GangQuery
from moorings.views.events import describe
from moorings.views.times import show_time
from runtime.waits import together
from runtime.wire import Incoming

if TYPE_CHECKING:
    from moorings.bus_client import Client

WATCHED: tuple[Topic[Any], ...] = (DECISIONS, CONFIRMATIONS)
KINDS = frozenset(kind.__name__ for topic in WATCHED for kind in messages_of(topic))
"""Of events, as in docs/bus.md."""


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(watch)


def watch(
    gang: Annotated[
        str,
        typer.Option(
            help="Only events of this gang: its name, namespace/name or uid.",
            autocompletion=complete_gangs,
            show_default=False,
        ),
    ] = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help=f"Only events of this kind: {', '.join(sorted(KINDS))}; may be "
            "repeated.",
            autocompletion=lambda: sorted(KINDS),
            show_default=False,
        ),
    ] = None,
    namespace: Namespace = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
    count: Annotated[
        int,
        typer.Option(metavar="N", help="Stop after this many events; 0: never.", min=0),
    ] = 0,
) -> None:
    """Follow decisions and what becomes of them, until Ctrl-C.

    moorings watch --gang team-a/train --kind GangAllocated --kind GatesOpened
    """
    wanted = EventFilter.of(gang, namespace, kinds or ())

    async def run() -> int:
        async with connect(server, state_dir, cluster) as client:
            await Watch(client, wanted, output, count).run()
        return ExitCode.YES

    try:
        raise typer.Exit(asyncio.run(run()))
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.YES) from None


class EventFilter(Struct, frozen=True, kw_only=True):
    """Filters of events; empty: all."""

    namespace: str | None = None
    """None: any."""
    gang: str = ""
    """Its name or uid."""
    kinds: frozenset[str] = frozenset()

    @classmethod
    def of(cls, gang: str, namespace: str | None, kinds: Sequence[str]) -> EventFilter:
        """Read what was typed; kinds in any case.

        Raises:
            UsageError: there is no such kind, or two namespaces are named.
        """
        by_lower = {kind.lower(): kind for kind in KINDS}
        for kind in kinds:
            if kind.lower() not in by_lower:
                near = difflib.get_close_matches(kind, KINDS)
                listed = ", ".join(sorted(KINDS))
                meant = f"; did you mean {near[0]}?" if near else ""
                raise UsageError(
                    f"watch: unknown --kind {kind}; the kinds are {listed}{meant}"
                )
        query = GangQuery.of(gang, None)
        if None not in (namespace, query.namespace) and namespace != query.namespace:
            raise UsageError(f"watch: --gang {gang} is not in namespace {namespace}")
        return cls(
            namespace=namespace or query.namespace,
            gang=query.name,
            kinds=frozenset(by_lower[kind.lower()] for kind in kinds),
        )

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        """Topics of the wanted events."""
        return tuple(
            topic
            for topic in WATCHED
            if not self.kinds or self.kinds & {k.__name__ for k in messages_of(topic)}
        )

    def takes(self, message: DecisionMessage | ConfirmationMessage) -> bool:
        """True if a message is wanted by namespace and kind."""
        return self.namespace in (None, message.namespace) and (
            not self.kinds or type(message).__name__ in self.kinds
        )

    def takes_gang(self, name: str, uid: GangUID) -> bool:
        """True if a gang of this name and uid is wanted."""
        return self.gang in ("", name, uid)


class Watch:
    """One watch: a line for each decision and each confirmation, from now on."""

    def __init__(
        self, client: Client, wanted: EventFilter, output: Format, count: int
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._output = output
        self._remaining = count or -1
        self._stop = asyncio.Event()
        self._names: dict[GangKey, str] = {}

    async def run(self) -> None:
        """Print events until there were enough, from the streams side by side."""
        await together(tuple(map(self._follow_topic, self._wanted.topics)))

    async def _follow_topic(self, topic: Topic[Any]) -> None:
        namespace = self._wanted.namespace
        names = (self._client.cluster, *([namespace] if namespace else ()))
        batches = self._client.bus.read(
            topic,
            *names,
            stop=self._stop,
            start="new",
            survives_restart=True,
        )
        async for batch in batches:
            for refused in batch.refused:
                notify(f"skipped an unreadable message: {refused.subject}")
            for incoming in batch.messages:
                await self._print_event(incoming)
                if self._remaining == 0:
                    self._stop.set()
                    return

    async def _print_event(
        self, incoming: Incoming[DecisionMessage | ConfirmationMessage]
    ) -> None:
        message = incoming.message
        if message is None or not self._wanted.takes(message):
            return
        name = ""
        if self._output is Format.TABLE or self._wanted.gang:
            name = await self._find_name(message)
        if not self._wanted.takes_gang(name, message.uid):
            return
        if self._output is Format.TABLE:
            place = f"{message.namespace}/{name}"
            at, what = show_time(incoming.time_s), type(message).__name__
            line = f"{at}   {what:<17} {place:<30} {describe(message)}"
            say(line.rstrip())
        else:
            say(json.dumps(json.loads(incoming.data)))
        self._remaining -= 1

    async def _find_name(self, message: DecisionMessage | ConfirmationMessage) -> str:
        """Return the gang's name, which is in decisions and not in confirmations.

        Its uid where no decision says it any more.
        """
        from runtime.refusals import Refusals  # noqa: PLC0415  # slow to import

        if isinstance(message, DecisionMessage):
            self._names[message.key] = message.name
        elif message.key not in self._names:
            # A message of nonsense leaves it without a name.
            with Refusals().guard(DECISIONS.subject(*message.address)):
                last = await self._client.bus.read_last(DECISIONS, *message.address)
                if last is not None and last.message is not None:
                    self._names[message.key] = last.message.name
        return self._names.get(message.key) or message.uid
