"""A request ends with its answer, or with why none will come."""

from __future__ import annotations

import pytest

from runtime.bus.pending import PendingRequests
from runtime.errors import BusUnavailableError, NotAllowedError

VIOLATION = 'nats: permissions violation for publish to "$js.api.stream.info.state"'


async def test_an_answer_finds_its_request() -> None:
    """And one that comes late, or twice, finds nobody."""
    pending: PendingRequests[int] = PendingRequests()
    first, one = pending.add("a")
    second, two = pending.add("a")
    pending.answer(second, 2)
    pending.answer(first, 1)
    assert (await one, await two) == (1, 2)
    pending.answer(first, 3)


async def test_a_lost_connection_fails_all_that_wait() -> None:
    pending: PendingRequests[int] = PendingRequests()
    token, answered = pending.add("a")
    pending.answer(token, 1)
    _, waiting = pending.add("b")
    pending.fail_all()
    assert await answered == 1
    with pytest.raises(BusUnavailableError):
        await waiting


async def test_what_the_server_forbids_fails_at_once_and_nothing_else() -> None:
    pending: PendingRequests[int] = PendingRequests()
    _, forbidden = pending.add("$JS.API.STREAM.INFO.STATE")
    token, other = pending.add("$JS.API.STREAM.INFO.DEC")
    pending.fail_forbidden("nats: slow consumer", "platform")
    pending.fail_forbidden(VIOLATION, "platform")
    pending.answer(token, 1)
    assert await other == 1
    with pytest.raises(NotAllowedError, match="not allowed for user 'platform'"):
        await forbidden
