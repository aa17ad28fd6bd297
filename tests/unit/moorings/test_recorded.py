"""Recorded solves are listed with their answers, and found by the start of an id."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import pytest
from msgspec import structs

from contracts.ids import ClusterName, GangKey, GangUID, Namespace
from contracts.solves import SolveMessage, SolveOpened
from contracts.topics import SOLVES
from moorings.bus_client import Client
from moorings.errors import UnknownNameError, UsageError
from moorings.recorded import (
    SolveEntry,
    SolveFilter,
    fetch_solve,
    find_solve,
    list_solves,
)
from runtime.bus.bus import Bus
from runtime.errors import BlobMissingError
from runtime.wire import Incoming, TopicBatch
from solver.errors import RecordError
from tests.builders.solves import solve_decided, solve_opened

CLUSTER = ClusterName("east")
opened = partial(solve_opened, cluster=CLUSTER)
decided = partial(solve_decided, cluster=CLUSTER)


class RecordBus:
    """Has these messages, a batch each, and no blobs."""

    def __init__(self, *messages: SolveMessage | None) -> None:
        self._messages = messages

    async def read_existing(
        self, *_: object, **__: object
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Hand over the messages."""
        for message in self._messages:
            incoming: Incoming[Any] = Incoming(
                topic=SOLVES, names=(), message=message, data=b"", sequence=1
            )
            yield TopicBatch(messages=(incoming,), caught_up=True)

    async def get_blob(self, sha256: str) -> bytes:
        """Have none."""
        raise BlobMissingError(sha256)


def client(*messages: SolveMessage | None) -> Client:
    """Make a client of a bus with these messages."""
    return Client(cast("Bus", RecordBus(*messages)), CLUSTER)


async def test_an_answer_stands_with_its_solve() -> None:
    """One whose solve has expired is left out, and so is what was removed."""
    entries = await list_solves(
        client(opened("a1"), None, decided("a1"), decided("gone"), opened("b2"))
    )
    assert [(entry.opened.solve, entry.decided) for entry in entries] == [
        ("a1", decided("a1")),
        ("b2", None),
    ]


async def test_the_beginning_of_an_id_is_enough_while_it_is_one() -> None:
    """Else those that begin so are named; what is neither id nor time says how."""
    solves = client(opened("a1"), opened("a2"), opened("b1"))
    assert (await find_solve(solves, "b")).opened.solve == "b1"
    with pytest.raises(UnknownNameError, match=r"single solve .* a1") as caught:
        await find_solve(solves, "a")
    assert "b1" not in str(caught.value)
    for name in ("c", "tomorrow", "14:61"):
        with pytest.raises(UnknownNameError, match="or when it was: ") as caught:
            await find_solve(solves, name)
        assert "did you mean" not in str(caught.value)


def at(name: str, moment: str, *gangs: str) -> SolveOpened:
    """Open a solve at a moment, for gangs."""
    keys = tuple(GangKey(Namespace("a"), GangUID(uid)) for uid in gangs)
    return structs.replace(opened(name), opened_at=moment, gangs=keys)


async def test_a_solve_is_found_by_when_it_was() -> None:
    """Where several were, or none, those are named that may be meant."""
    solves = client(
        at("a1", "2026-11-20T12:00:10Z"),
        at("a2", "2026-11-20T12:01:10Z"),
        at("a3", "2026-11-20T12:01:40Z"),
    )
    found = await find_solve(solves, "2026-11-20T12:00Z")
    assert found.opened.solve == "a1"
    found = await find_solve(solves, "2026-11-20 12:01:40 UTC")
    assert found.opened.solve == "a3"
    with pytest.raises(UnknownNameError, match=r"single .* a2 \(.*, 0 gangs\), a3"):
        await find_solve(solves, "2026-11-20T12:01Z")
    with pytest.raises(UnknownNameError, match=r"none was recorded.*mean a3"):
        await find_solve(solves, "2026-11-20T12:02Z")


@pytest.mark.parametrize(
    ("since", "until", "gangs", "names"),
    [
        ("", "", None, ["a1", "a2"]),
        ("2026-11-20T12:01Z", "", None, ["a2"]),
        ("", "2026-11-20T12:01Z", None, ["a1", "a2"]),
        ("", "2026-11-20T12:00Z", None, ["a1"]),
        ("", "", {"x"}, ["a2"]),
        ("", "", {"y", "z"}, ["a1"]),
        ("2099-01-01", "", None, []),
    ],
)
async def test_solves_are_filtered_by_time_and_gang(
    since: str, until: str, gangs: set[str] | None, names: list[str]
) -> None:
    """To the end of the minute that is named."""
    solves = client(
        at("a1", "2026-11-20T12:00:10Z", "z"), at("a2", "2026-11-20T12:01:59Z", "x")
    )
    wanted = await SolveFilter.of(solves, since=since, until=until)
    if gangs is not None:
        wanted = structs.replace(wanted, gangs=frozenset(map(GangUID, gangs)))
    found = [
        e.opened.solve for e in await list_solves(solves) if wanted.lets_through(e)
    ]
    assert found == names


async def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(UsageError, match="'soon' is no time"):
        await SolveFilter.of(client(), since="soon")


async def test_a_solve_whose_parts_have_expired_cannot_be_had() -> None:
    """It is said which solve, and which part."""
    with pytest.raises(RecordError, match="blob p: missing"):
        await fetch_solve(client(), SolveEntry(opened=opened("a1")))
