"""What a command that looks knows of gangs, and what it was not let to read.

What is said of gangs must be readable. Reports, and what the cluster holds, may be kept
from a user of the bus: then that is said, and the rest shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from moorings.cli.output import notify
from moorings.client import Client
from moorings.errors import CannotReadError, UnknownNameError
from moorings.stories import GangQuery, GangStory, HeldObjects, collect_stories
from moorings.views.silence import describe_silence

T = TypeVar("T")
_WITHOUT = {
    "REPORT": "what pods wait for that were not submitted is not known",
    "LEADS": "whether a publisher leads is not known",
    "STATE": "which pods and claims of running gangs are gone is not known",
}
NOT_YET = (
    "pods that wait are known here after some seconds; until then `kubectl describe"
    " pod` says why they do"
)


class KnownGangs(Struct, kw_only=True):
    """Gangs, and what of their pods and claims is there."""

    stories: list[GangStory]
    held: HeldObjects | None
    """None: it could not be read."""
    unread: list[str]
    """What could not be read, and what is not known without it."""
    silence: str = ""
    """That no publisher leads; empty: nothing is against it."""

    def notify_unread(self) -> None:
        """Say what could not be read, and that nobody may act on the rest."""
        if self.silence:
            notify(self.silence)
        for line in self.unread:
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
    silence = describe_silence(leader, datetime.now(UTC))
    stories = collect_stories(records, reports or ())
    return KnownGangs(stories=stories, held=held, unread=unread, silence=silence)


async def _read_if_allowed(reading: Awaitable[T], unread: list[str]) -> T | None:
    try:
        return await reading
    except CannotReadError as error:
        unread.append(f"{error}; {_WITHOUT[error.stream]}")
        return None


def unknown_gang(wanted: GangQuery, stories: Sequence[GangStory]) -> UnknownNameError:
    """Make the error that there is no such gang, with those that are called alike."""
    names = sorted({story.name for story in stories})
    near = difflib.get_close_matches(wanted.name, names)
    return UnknownNameError("gang", wanted.name, near, NOT_YET)
