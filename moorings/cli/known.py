"""Gangs as commands read them, and what they may not read.

Messages about gangs must be readable. Reports, and what the cluster holds, may be kept
from a user of the bus: then a notice says so, and the rest is shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from contracts.fence import SolverSeen
from contracts.ids import ClusterName
from moorings.cli.output import notify
from moorings.errors import CannotReadError, UnknownNameError
from moorings.stories import (
    LEAST_OF_UID,
    GangQuery,
    GangStory,
    HeldObjects,
    collect_stories,
)
from moorings.views.names import tell_apart
from moorings.views.silence import describe_no_solver, describe_silence

if TYPE_CHECKING:
    from moorings.bus_client import Client

T = TypeVar("T")
Solvers = Mapping[ClusterName, SolverSeen]
"""Which solver led last, by cluster."""
_WITHOUT = {
    "REPORT": "pods that are not submitted yet are not shown",
    "DEC": "whether a solver leads is unknown",
    "LEADS": "whether a publisher leads is unknown",
    "STATE": "pods and claims of running gangs that are gone are not marked",
}
NOT_YET = (
    "waiting pods appear here after a few seconds; until then `kubectl describe "
    "pod` says why they wait"
)


class KnownGangs(Struct, kw_only=True):
    """Gangs, and what of their pods and claims is there."""

    stories: list[GangStory]
    held: HeldObjects | None
    """None: it could not be read."""
    unread: list[str]
    """What could not be read, and what is unknown without it."""
    silences: tuple[str, ...] = ()
    """That no solver leads, or no publisher."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What could not be read, and that no solver or publisher leads."""
        return tuple(dict.fromkeys((*self.silences, *self.unread)))

    def notify_unread(self) -> None:
        """Print the notices."""
        for line in self.notices:
            notify(line)


async def fetch_known(client: Client) -> KnownGangs:
    """Fetch all gangs, and as much beside them as may be read.

    Raises:
        CannotReadError: what is said of gangs cannot be read.
    """
    unread: list[str] = []
    records = await client.fetch_gangs()
    reports = await _read_if_allowed(client.fetch_reports(), unread)
    held = await _read_if_allowed(client.fetch_held(), unread)
    leader = await _read_if_allowed(client.fetch_leader(), unread)
    solvers = await _read_if_allowed(client.fetch_solvers(), unread)
    stories = collect_stories(records, reports or ())
    if not stories:
        check_cluster(client, solvers)
    now = datetime.now(UTC)
    silences = [describe_silence(leader, now)]
    waits = any(record.decision is None for record in records)
    if solvers is not None and (waits or client.cluster in solvers):
        seen = solvers.get(client.cluster)
        silences.insert(0, describe_no_solver(client.cluster, seen, now))
    return KnownGangs(
        stories=stories,
        held=held,
        unread=unread,
        silences=tuple(filter(None, silences)),
    )


async def fetch_solvers(client: Client) -> Solvers | None:
    """Fetch which solvers led last; None: who may only submit is not told."""
    try:
        return await client.fetch_solvers()
    except CannotReadError:
        return None


def check_cluster(client: Client, solvers: Solvers | None) -> None:
    """Refuse a cluster of which nothing is known, where there are others.

    Raises:
        UnknownNameError: no solver ever led in it, but in others.
    """
    if solvers and client.cluster not in solvers:
        raise UnknownNameError("cluster", client.cluster, sorted(solvers))


def find_silence(client: Client, solvers: Solvers | None) -> str:
    """Return that no solver leads; empty: one does, or it is unknown."""
    if solvers is None:
        return ""
    seen = solvers.get(client.cluster)
    return describe_no_solver(client.cluster, seen, datetime.now(UTC))


def notify_silence(client: Client, solvers: Solvers | None) -> bool:
    """Print that no solver leads; return True if none does."""
    silence = find_silence(client, solvers)
    if silence:
        notify(silence)
    return bool(silence)


async def _read_if_allowed(reading: Awaitable[T], unread: list[str]) -> T | None:
    try:
        return await reading
    except CannotReadError as error:
        unread.append(f"{error}; {_WITHOUT[error.stream]}")
        return None


def unknown_gang(
    wanted: GangQuery, stories: Sequence[GangStory], *hints: str
) -> UnknownNameError:
    """Make the error that there is no such gang, with those that are called alike.

    `stories` are those of all namespaces: it may be in another one.
    """
    same = {f"{s.namespace}/{s.name}" for s in stories if s.name == wanted.name}
    begun = [
        tell_apart(record)
        for story in stories
        for record in story.records
        if len(wanted.name) >= LEAST_OF_UID and record.uid.startswith(wanted.name)
    ]
    names = sorted({story.name for story in stories})
    near = sorted(same) or begun or difflib.get_close_matches(wanted.name, names)
    name = f"{wanted.namespace}/{wanted.name}" if wanted.namespace else wanted.name
    return UnknownNameError("gang", name, near, "; ".join((*hints, NOT_YET)))
