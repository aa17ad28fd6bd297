"""A page is what a stream sent, whole and in order, as far as a message has room."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from contracts.pages import read_page
from runtime.bus.connection import Connection
from runtime.bus.gathering import Gathered, Gatherer, make_page
from runtime.bus.subscription import Delivery, Handler
from runtime.errors import BusRefusedError, BusUnavailableError, MessageError
from runtime.wire import unpack

ROOM = 1 << 20
TIME = "2026-01-02T03:04:05.6Z"


def _message(sequence: int, before: int, body: bytes = b"{}", **said: str) -> Delivery:
    headers = {
        **said,
        "Nats-Stream": "DEC",
        "Nats-Subject": f"dec.v1.c.n.{sequence}",
        "Nats-Sequence": f"{sequence}",
        "Nats-Last-Sequence": f"{before}",
        "Nats-Time-Stamp": TIME,
        "Nats-Num-Pending": f"{100 - sequence}",
    }
    return Delivery("_INBOX.x.1", "", body, headers)


def _end(last: int, **headers: str) -> Delivery:
    told = {"Status": "204", "Nats-Last-Sequence": f"{last}", "Nats-Num-Pending": "92"}
    return Delivery("_INBOX.x.1", "", b"", told | headers)


def _read(*messages: Delivery, end: Delivery, room: int = ROOM) -> Any:
    return read_page(make_page(Gathered([*messages], end), room))


def test_a_page_has_all_that_a_stream_sent() -> None:
    traced = _message(8, 3, b"\xff", traceparent="x")
    page, bodies = _read(_message(3, 0), traced, end=_end(8))

    assert bodies == [b"{}", b"\xff"]
    assert page.pending == 92
    first, second = page.messages
    assert (first.sequence, first.subject, first.time) == (3, "dec.v1.c.n.3", TIME)
    assert (first.headers, second.headers) == ({}, {"traceparent": "x"})


def test_where_there_is_nothing_a_page_is_empty() -> None:
    page, bodies = _read(end=Delivery("", "", b"", {"Status": "404"}))
    assert (page.messages, page.pending, bodies) == ((), 0, [])


@pytest.mark.parametrize(
    ("messages", "end"),
    [
        ([_message(3, 0), _message(8, 5)], _end(8)),
        ([_message(5, 3)], _end(5)),
        ([_message(3, 0)], _end(8)),
        ([], _end(8)),
        ([_message(3, 0)], _end(3, Status="503")),
        ([], Delivery("", "", b"", {})),
    ],
)
def test_a_page_with_a_gap_or_an_error_is_none(
    messages: list[Delivery], end: Delivery
) -> None:
    with pytest.raises(BusRefusedError):
        make_page(Gathered(messages, end), ROOM)


def test_what_has_no_room_comes_with_the_next_page() -> None:
    large = b"x" * (ROOM - 10_000)
    page, bodies = _read(
        _message(3, 0, large), _message(8, 3, b"y" * 10_000), end=_end(8), room=ROOM
    )

    assert (len(page.messages), page.pending, bodies) == (1, 97, [large])


def test_a_message_that_has_room_nowhere_is_told_as_such() -> None:
    page, (body,) = _read(_message(3, 0, b"x" * ROOM), end=_end(3), room=ROOM)
    (message,) = page.messages

    with pytest.raises(MessageError, match=f"has {ROOM} bytes, more than a page"):
        unpack(message.subject, body, message.headers, message.sequence, 0.0)


def test_no_text_of_others_makes_a_page_too_large() -> None:
    """JSON writes some characters with six."""
    told = {f"h{n}": "\1" * 400 for n in range(10)}
    messages = [_message(n, n - 1, b"", **told) for n in range(1, 100)]
    page = make_page(Gathered(messages, _end(99)), ROOM)

    assert len(page) <= ROOM
    assert 20 < len(read_page(page)[1]) < 99


class _Stream:
    """A connection behind which a stream answers what it is told to."""

    def __init__(self) -> None:
        self.hand_over: Handler = lambda _: None
        self.replies: list[str] = []

    def new_inbox(self) -> str:
        return "_INBOX.x.y"

    def api_subject(self, operation: str) -> str:
        return f"$JS.API.{operation}"

    async def subscribe(self, _subject: str, handler: Handler) -> None:
        self.hand_over = handler

    async def publish(self, _subject: str, _data: bytes, *, reply: str) -> None:
        self.replies.append(reply)

    def answer(self, asked: int, *messages: Delivery) -> None:
        """Answer a request, which has a number."""
        for message in messages:
            self.hand_over(message._replace(subject=self.replies[asked]))


async def test_each_page_gets_its_own_messages_also_late_ones() -> None:
    stream = _Stream()
    gatherer = Gatherer(cast("Connection", stream))
    await gatherer.listen()
    with pytest.raises(BusUnavailableError):
        await gatherer.ask("DIRECT.GET.DEC", b"{}", 0.01)
    asking = [
        asyncio.create_task(gatherer.ask("DIRECT.GET.DEC", b"{}", 10.0))
        for _ in range(2)
    ]
    await asyncio.sleep(0.01)
    stream.answer(0, _message(1, 0), _end(1))
    stream.answer(1, _message(3, 0))
    stream.answer(2, _message(4, 0), _end(4))
    stream.answer(1, _end(3), _end(3))
    first, second = await asyncio.gather(*asking)

    assert [m.headers["Nats-Sequence"] for m in first.messages] == ["3"]
    assert [m.headers["Nats-Sequence"] for m in second.messages] == ["4"]
    assert first.end.headers["Nats-Last-Sequence"] == "3"
