"""The command that says why: where a gang is and what it has, or why it waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from contracts.gang import GangPhase
from contracts.lifecycle import GangRecord
from moorings.cli.completing import complete_explained
from moorings.cli.connecting import Connecting
from moorings.cli.exit_codes import ExitCode
from moorings.cli.get import parse_target
from moorings.cli.known import NOT_YET, KnownGangs, fetch_known, unknown_gang
from moorings.cli.options import Cluster, Namespace, Output, Server, StateDir
from moorings.cli.output import Format, show
from moorings.cli.views import print_explanation
from moorings.errors import BypassedError, UnknownNameError, UsageError
from moorings.stories import GangQuery, GangStory, WrittenGangs
from moorings.views.gangs import explain_story

if TYPE_CHECKING:
    from moorings.bus_client import Client


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(explain)


def explain(
    what: Annotated[
        str,
        typer.Argument(
            help="Gang by name, namespace/name, uid or start of its uid; pod/NAME; "
            "or claim/NAME, of one that is allocated without a pod.",
            autocompletion=complete_explained,
            show_default=False,
        ),
    ],
    namespace: Namespace = None,
    server: Server = "",
    state_dir: StateDir = None,
    cluster: Cluster = "local",
    output: Output = Format.TABLE,
    what_helps: Annotated[
        bool,
        typer.Option(
            "--what-helps",
            help="Of a gang that waits: also solve its last question again, for "
            "half a minute at most, to find the smallest changes that let it in.",
        ),
    ] = False,
) -> None:
    """Show where a gang is and which devices it has, or why it waits.

    Of a gang that waits: since when, its place in line, who holds the devices that it
    could have, what would help, and its last decisions with their solves.

    Replaced pods of a running gang are decided separately: each decision is explained,
    with -o json as a list.
    """
    explain_one(
        what,
        namespace,
        Connecting(server=server, state_dir=state_dir, cluster=cluster),
        output,
        what_helps=what_helps,
    )


def explain_one(
    what: str,
    namespace: str | None,
    bus: Connecting,
    output: Format,
    *,
    what_helps: bool = False,
) -> NoReturn:
    """Explain a gang or a pod, and end the command.

    Raises:
        UsageError: it is neither.
    """
    from moorings.cli.explain_context import add_context, add_help  # noqa: PLC0415  # slow to import

    kind, name = parse_target(what, None)
    if kind not in ("gangs", "pods") or name is None:
        raise UsageError(f"explain: {what!r} is neither a gang nor pod/NAME")

    async def run() -> int:
        async with bus.connect() as client:
            known = await fetch_known(client)
            if kind == "pods":
                stories = await _find_stories_of_pod(client, known, name, namespace)
            else:
                stories = _find_stories(known, GangQuery.of(name, namespace))
            records = [record for story in stories for record in story.records]
            written = await client.fetch_written(records)
            explanations = [
                explanation
                for story in stories
                for explanation in explain_story(story, written, known.held)
            ]
            await add_context(client, known, records, explanations)
            if what_helps:
                await add_help(client, records, explanations)
        known.notify_unread()
        _show_explanations(explanations, output)
        rejected = any(e["phase"] == GangPhase.REJECTED for e in explanations)
        return ExitCode.NO if rejected else ExitCode.YES

    raise typer.Exit(asyncio.run(run()))


def _show_explanations(explanations: list[dict[str, Any]], output: Format) -> None:
    if output is Format.TABLE:
        for explanation in explanations:
            print_explanation(explanation)
    else:
        value = explanations if len(explanations) > 1 else explanations[0]
        show(value, output, (), ())


def _find_stories(known: KnownGangs, wanted: GangQuery) -> list[GangStory]:
    """Find the gangs of a name: those alive, else the last.

    Raises:
        UnknownNameError: there is none.
    """
    wanted = wanted.among(record for s in known.stories for record in s.records)
    matches = [story for story in known.stories if wanted.is_in(story)]
    if not matches:
        raise unknown_gang(wanted, known.stories)
    living = [story for story in matches if story.living or story.reports]
    return living or matches[-1:]


async def _find_stories_of_pod(
    client: Client, known: KnownGangs, name: str, namespace: str | None
) -> list[GangStory]:
    """Find the gang of a pod: that it runs for, that asked for it, or that it waits in.

    Raises:
        BypassedError: it was bound without us.
        UnknownNameError: there is none.
    """
    bypassed = find_bypassed(known, name, namespace)
    if bypassed:
        raise BypassedError(bypassed)
    stories = [s for s in known.stories if namespace in (None, s.namespace)]
    written = await client.fetch_written([r for s in stories for r in s.records])
    # The newest first: another pod may have had the name before.
    for story in sorted(stories, key=_age_of, reverse=True):
        waits = any(name in report.names for report in story.reports)
        if waits or any(_is_of_pod(r, written, name) for r in story.records):
            return [story]
    for story in stories:
        if story.is_lone and story.name == name:
            return [story]
    raise UnknownNameError("pod", name, why=NOT_YET)


def find_bypassed(known: KnownGangs, name: str, namespace: str | None) -> str:
    """Return the `namespace/name` of a pod on a node that no gang has; empty: none.

    What is known of gangs may be of earlier pods of that name.
    """
    pods = {} if known.held is None else known.held.pods
    gangs = {
        key: gang
        for key, gang in pods.items()
        if key.partition("/")[2] == name and namespace in (None, key.partition("/")[0])
    }
    stories = [s for s in known.stories if namespace in (None, s.namespace)]
    waits = any(name in report.names for s in stories for report in s.reports)
    # One that was bound without us may have been asked for since, by policy.
    is_asked = any(s.is_lone and s.name == name and s.living for s in stories)
    is_known = waits or is_asked or any(gangs.values())
    return "" if is_known else min(gangs, default="")


def _age_of(story: GangStory) -> tuple[bool, int]:
    """Order gangs by their last submission; those alive come after those that ended."""
    last = max((record.submission_sequence for record in story.records), default=0)
    return bool(story.living or story.reports), last


def _is_of_pod(record: GangRecord, written: WrittenGangs, name: str) -> bool:
    """True if the submission has a pod of this name, or its claims were written."""
    message = written.get(record.key)
    if message is not None and any(pod.pod == name for pod in message.pods):
        return True
    places = record.submission.places if record.submission is not None else {}
    return any(
        pod.name == name
        for of_member in places.values()
        for place in of_member
        for pod in place.pods
    )
