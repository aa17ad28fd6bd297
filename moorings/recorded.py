"""Recorded solves, read from the bus: their list, one of them whole."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from contracts.counts import counted
from contracts.errors import DecodeError
from contracts.ids import GangUID
from contracts.solves import SolveDecided, SolveOpened
from contracts.topics import SOLVES
from moorings.errors import UnknownNameError, UsageError
from moorings.stories import GangQuery
from moorings.views.times import MOMENTS, Span, read_span, show_time, to_moment
from runtime.errors import BlobCorruptedError, BlobMissingError
from solver.errors import RecordError
from solver.problem.problem import ROOT
from solver.record import Recorded

if TYPE_CHECKING:
    from moorings.bus_client import Client

_MOST = 5
"""Solves that are named where several were meant."""
_WHOLE_UID = 36
_BEGINNING, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class SolveEntry(Struct, frozen=True, kw_only=True):
    """One recorded solve, answered or not."""

    opened: SolveOpened
    decided: SolveDecided | None = None


async def list_solves(client: Client) -> list[SolveEntry]:
    """List the recorded solves, oldest first."""
    entries: dict[str, SolveEntry] = {}
    async for message, _ in client.read(SOLVES, start="all"):
        if isinstance(message, SolveOpened):
            entries[message.solve] = SolveEntry(opened=message)
        elif message.solve in entries:
            opened = entries[message.solve].opened
            entries[message.solve] = SolveEntry(opened=opened, decided=message)
    return list(entries.values())


class SolveFilter(Struct, frozen=True, kw_only=True):
    """Filters of recorded solves; without any all are wanted."""

    gangs: frozenset[GangUID] | None = None
    """Only solves in which one of these was tried."""
    since: datetime | None = None
    until: datetime | None = None
    """The first moment that is too late."""

    @classmethod
    async def of(
        cls, client: Client, gang: str = "", since: str = "", until: str = ""
    ) -> SolveFilter:
        """Read what was typed: a gang, and moments in which a span begins and ends.

        Raises:
            UsageError: a moment cannot be read.
            UnknownNameError: there is no such gang.
        """
        begin, end = _read_moment(since), _read_moment(until)
        return cls(
            gangs=await _find_uids(client, gang) if gang else None,
            since=None if begin is None else begin.begin,
            until=None if end is None else end.end,
        )

    def lets_through(self, entry: SolveEntry) -> bool:
        """True if a solve is wanted."""
        uids = {gang.uid for gang in entry.opened.gangs}
        if self.gangs is not None and not self.gangs & uids:
            return False
        at = to_moment(entry.opened.opened_at)
        if at is None:
            return self.since is None and self.until is None
        return (self.since is None or self.since <= at) and (
            self.until is None or at < self.until
        )


def _read_moment(text: str) -> Span | None:
    span = read_span(text, datetime.now(UTC)) if text else None
    if text and span is None:
        raise UsageError(f"{text!r} is no time; write it as {MOMENTS}")
    return span


async def _find_uids(client: Client, name: str) -> frozenset[GangUID]:
    """Find all submissions of a gang; one that is long over only by its whole uid."""
    records = await client.fetch_gangs()
    wanted = GangQuery.of(name).among(records)
    uids = frozenset(record.uid for record in records if wanted.is_of(record))
    if not uids and len(name) < _WHOLE_UID:
        names = sorted({record.name for record in records})
        near = difflib.get_close_matches(wanted.name, names)
        raise UnknownNameError("gang", name, near, "gangs that are over have a uid")
    return uids or frozenset({GangUID(name)})


async def find_solve(
    client: Client, name: str, wanted: SolveFilter | None = None
) -> SolveEntry:
    """Find a solve by its id, the beginning of it, or when it was.

    Raises:
        UnknownNameError: there is none, or more than one.
    """
    solves = await list_solves(client)
    if wanted is not None:
        solves = [entry for entry in solves if wanted.lets_through(entry)]
    matches = [entry for entry in solves if entry.opened.solve.startswith(name)]
    span = None if matches else read_span(name, datetime.now(UTC))
    if span is not None:
        matches = [entry for entry in solves if _is_in(entry, span)]
    if len(matches) == 1:
        return matches[0]
    if matches and span is not None:
        raise UnknownNameError(
            "single solve", name, [_name_entry(entry) for entry in matches[-_MOST:]]
        )
    if span is not None:
        before = [e for e in solves if _is_in(e, Span(_BEGINNING, span.begin))]
        after = [e for e in solves if _is_in(e, Span(span.end, _END))]
        near = [_name_entry(entry) for entry in (*before[-1:], *after[:1])]
        why = f"none was recorded at {show_time(span.begin)}"
        raise UnknownNameError("solve", name, near, why)
    if matches:
        names = [_name_entry(entry) for entry in matches[-_MOST:]]
        raise UnknownNameError("single solve", name, names)
    why = f"write its id, the start of it, or when it was: {MOMENTS}"
    raise UnknownNameError("solve", name, (), why)


def _is_in(entry: SolveEntry, span: Span) -> bool:
    at = to_moment(entry.opened.opened_at)
    return at is not None and at in span


def _name_entry(entry: SolveEntry) -> str:
    opened = entry.opened
    gangs = counted(len(opened.gangs), "gang")
    return f"{opened.solve[:16]} ({show_time(opened.opened_at)}, {gangs})"


async def fetch_solve(client: Client, entry: SolveEntry) -> Recorded:
    """Read a solve with everything that is needed to solve it again.

    Raises:
        RecordError: a part of it has expired or is damaged.
    """
    opened, bus = entry.opened, client.bus
    try:
        root = await bus.get_blob(opened.problem)
        pages = {sha: await bus.get_blob(sha) for sha in ROOT.decode(root).pages}
        decision = b""
        if entry.decided is not None:
            decision = await bus.get_blob(entry.decided.decision)
    except (BlobMissingError, BlobCorruptedError, DecodeError) as error:
        raise RecordError(opened.solve, str(error)) from error
    return Recorded(
        opened=opened,
        decided=entry.decided,
        root=root,
        pages=pages,
        decision=decision,
    )
