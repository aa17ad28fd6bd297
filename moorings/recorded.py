"""Recorded solves, read from the bus: their list, one of them whole."""

from __future__ import annotations

from msgspec import Struct

from contracts.errors import DecodeError
from contracts.solves import SolveDecided, SolveOpened
from contracts.topics import SOLVES
from moorings.bus_client import Client
from moorings.errors import UnknownNameError
from runtime.errors import BlobCorruptedError, BlobMissingError
from solver.errors import RecordError
from solver.problem.problem import ROOT
from solver.record import Recorded


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


async def find_solve(client: Client, name: str) -> SolveEntry:
    """Find a solve by its id or the beginning of it.

    Raises:
        UnknownNameError: there is none, or more than one.
    """
    solves = await list_solves(client)
    matches = [entry for entry in solves if entry.opened.solve.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    ids = [entry.opened.solve for entry in (matches or solves)][-3:]
    raise UnknownNameError("solve", name, ids)


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
