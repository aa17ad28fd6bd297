"""What a relay passes on, and whose turn it is."""

from __future__ import annotations

import json

import pytest

from contracts.pages import PAGE_MESSAGES
from runtime.bus import relayed
from runtime.bus.relayed import (
    BUSY,
    FairQueue,
    Request,
    Room,
    make_refusal,
    read_request,
    remake_body,
)
from runtime.bus.subscription import Delivery

PAGE = {"seq": 7, "next_by_subj": "dec.v1.>"}


def _request(
    operation: str = "STREAM.INFO.DEC",
    data: bytes = b"",
    *,
    client: str = "one",
    came_s: float = 0.0,
    account: str = "VIEWERS",
    inbox: str = "",
) -> Request:
    reply = f"_INBOX.{inbox or client}.1"
    return Request(account, client, operation, data, reply, came_s)


def test_a_request_names_the_stream_that_answers() -> None:
    found = {
        operation: (_request(operation).stream, _request(operation).is_page)
        for operation in (
            "DIRECT.GET.DEC",
            "DIRECT.GET.DEC.dec.v1.a.b.c",
            "STREAM.INFO.DEC",
            "STREAM.MSG.GET.DEC",
        )
    }

    assert found == {
        "DIRECT.GET.DEC": ("DEC", True),
        "DIRECT.GET.DEC.dec.v1.a.b.c": ("DEC", False),
        "STREAM.INFO.DEC": ("", False),
        "STREAM.MSG.GET.DEC": ("", False),
    }


def test_only_what_is_cheap_is_passed_on() -> None:
    asked = json.dumps(
        {"seq": 3, "next_by_subj": "a.>", "multi_last": [">"], "last_by_subj": ">"}
    ).encode()

    assert remake_body(_request(data=b'{"subjects_filter":">"}')) == b""
    assert remake_body(_request("DIRECT.GET.DEC.a", asked)) == b""
    got = remake_body(_request("STREAM.MSG.GET.DEC", asked))
    assert json.loads(got or b"") == {"seq": 3, "next_by_subj": "a.>"}


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        ("STREAM.MSG.GET.DEC", b""),
        ("STREAM.MSG.GET.DEC", b"[" * 8_000),
        ("STREAM.MSG.GET.DEC", b'{"seq": "x"}'),
        ("STREAM.PURGE.DEC", b""),
        ("CONSUMER.CREATE.DEC.x", b"{}"),
        ("STREAM.DELETE.DEC", b""),
    ],
)
def test_nothing_else_is_passed_on(operation: str, data: bytes) -> None:
    assert remake_body(_request(operation, data)) is None


def test_a_refusal_is_read_as_one_of_the_server() -> None:
    told = json.loads(make_refusal(BUSY, "busy"))
    assert told["error"] == {"code": 429, "err_code": 10167, "description": "busy"}


def test_a_page_is_small_whatever_is_asked_for() -> None:
    body = PAGE | {"batch": 1 << 40, "max_bytes": 1 << 40, "multi_last": [">"]}
    asked = remake_body(_request("DIRECT.GET.DEC", json.dumps(body).encode()))

    assert json.loads(asked or b"") == {
        "seq": 7,
        "next_by_subj": "dec.v1.>",
        "batch": PAGE_MESSAGES,
        "max_bytes": relayed.PAGE_BYTES,
    }


@pytest.mark.parametrize(
    "wrong",
    [{"seq": 0}, {"seq": 1 << 64}, {"batch": 0}, {"next_by_subj": None}],
)
def test_no_page_is_asked_for_that_there_cannot_be(wrong: dict[str, object]) -> None:
    body = json.dumps(PAGE | wrong).encode()
    assert remake_body(_request("DIRECT.GET.DEC", body)) is None


def test_askers_take_turns() -> None:
    queue = FairQueue(Room())
    for name in ("flood", "flood", "flood", "quiet", "flood"):
        assert queue.put(_request(client=name))
    taken = [queue.take(0.0) for _ in range(6)]

    assert [request.asker if request else "" for request in taken] == [
        "flood",
        "quiet",
        "flood",
        "flood",
        "flood",
        "",
    ]


def test_behind_one_name_inboxes_take_turns() -> None:
    """However many there are, others have their turn."""
    queue = FairQueue(Room())
    for name in ("flood", "flood", "quiet"):
        assert queue.put(_request(client="local.a", inbox=name))
    assert queue.put(_request(client="local.b"))
    taken = [queue.take(0.0) for _ in range(4)]
    found = [(request.asker, request.inbox) for request in taken if request is not None]

    assert found == [
        ("local.a", "_INBOX.flood"),
        ("local.b", "_INBOX.local.b"),
        ("local.a", "_INBOX.quiet"),
        ("local.a", "_INBOX.flood"),
    ]


def test_an_account_of_many_askers_waits_for_its_own() -> None:
    queue = FairQueue(Room())
    for number in range(100):
        assert queue.put(_request(client=f"agent-{number}", account="AGENTS"))
    assert queue.put(_request(client="viewer"))
    taken = [queue.take(0.0) for _ in range(3)]
    askers = [request.asker for request in taken if request is not None]
    assert askers == ["agent-0", "viewer", "agent-1"]


def test_what_is_put_back_is_taken_next() -> None:
    queue = FairQueue(Room())
    for name in ("one", "one", "two"):
        queue.put(_request(client=name))
    first = queue.take(0.0)
    assert first is not None
    queue.put_back(first)

    assert queue.take(0.0) is first


def test_late_requests_are_dropped() -> None:
    queue = FairQueue(Room())
    queue.put(_request(came_s=0.0))
    queue.put(_request(came_s=9.0))

    taken = queue.take(Room().late_s)
    assert taken is not None
    assert taken.came_s == 9.0


def test_there_is_room_beside_those_who_fill_the_queue() -> None:
    queue = FairQueue(Room(count=6, count_in_all=8))
    for name in ("one", "two"):
        while queue.put(_request(client=name)):
            pass

    assert queue.put(_request(client="quiet"))


def test_bodies_have_little_room_where_there_are_many() -> None:
    """But what is small has some, whoever came first."""
    queue = FairQueue(Room(size=60, size_in_all=100))
    sizes = {"one": 40, "two": 40}
    for name, size in sizes.items():
        assert queue.put(_request(client=name, data=b"x" * size))

    assert not queue.put(_request(client="one", data=b"x" * 30))
    assert not queue.put(_request(client="three", data=b"x" * 40))
    assert queue.put(_request(client="three", data=b"x" * 30))
    assert queue.take(0.0) is not None
    assert queue.put(_request(client="one", data=b"x" * 30))


def test_many_of_one_account_leave_room_for_others() -> None:
    queue = FairQueue(Room(askers=4))
    for number in range(9):
        queue.put(_request(client=f"agent-{number}", account="AGENTS"))

    assert not queue.put(_request(client="agent-10", account="AGENTS"))
    assert queue.put(_request(client="viewer"))


INBOX = "_INBOX.viewer.abc.1"


@pytest.mark.parametrize(
    ("operation", "asker"),
    [
        ("hb.v1.local.node-1", "local.node-1"),
        ("submit.v1.local.team-a.1", "local.team-a"),
        ("DIRECT.GET.INV.inv.v1.local.node-1", "local.node-1"),
        ("DIRECT.GET.DEC.dec.v1.local.team-a.1", "local.team-a"),
        ("DIRECT.GET.DEC.solved.v1.local", "_INBOX.viewer.abc"),
        ("DIRECT.GET.DEC", "_INBOX.viewer.abc"),
        ("STREAM.INFO.DEC", "_INBOX.viewer.abc"),
    ],
)
def test_who_asks_is_whose_subject_it_is(operation: str, asker: str) -> None:
    """Which nats-server lets nobody else use; behind that it is who listens."""
    request = read_request("VIEWERS", operation, Delivery("x", INBOX, b"", {}), 0.0)

    assert request.asker == asker
    assert request.inbox == "_INBOX.viewer.abc"


@pytest.mark.parametrize(
    "reply",
    [
        *("", "_INBOX", "dec.v1.a.b.c", "$JS.API.STREAM.PURGE.DEC", "_INBOX.*.x"),
        *("_INBOX.>", "_INBOX..x", "_INBOX.x y", "_INBOX.x\n", f"_INBOX.{'x' * 255}"),
    ],
)
def test_only_inboxes_are_answered(reply: str) -> None:
    delivery = Delivery("x", reply, b"", {})
    request = read_request("VIEWERS", "STREAM.INFO.DEC", delivery, 0.0)

    assert (request.reply, request.asker) == ("", "")
