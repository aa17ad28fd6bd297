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
    name_client,
    remake_body,
)
from runtime.bus.subscription import Delivery

PAGE = {"seq": 7, "next_by_subj": "dec.v1.>"}


def _request(
    operation: str = "STREAM.INFO.DEC",
    data: bytes = b"",
    client: str = "one",
    came_s: float = 0.0,
    account: str = "VIEWERS",
) -> Request:
    return Request(client, account, operation, data, "_R_.x", came_s)


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


def test_connections_take_turns() -> None:
    queue = FairQueue(Room())
    for name in ("flood", "flood", "flood", "quiet", "flood"):
        assert queue.put(_request(client=name))
    taken = [queue.take(0.0) for _ in range(6)]

    assert [request.client if request else "" for request in taken] == [
        "flood",
        "quiet",
        "flood",
        "flood",
        "flood",
        "",
    ]


def test_an_account_of_many_connections_waits_for_its_own() -> None:
    queue = FairQueue(Room())
    for number in range(100):
        assert queue.put(_request(client=f"agent-{number}", account="AGENTS"))
    assert queue.put(_request(client="viewer"))
    taken = [queue.take(0.0) for _ in range(3)]
    clients = [request.client for request in taken if request is not None]
    assert clients == ["agent-0", "viewer", "agent-1"]


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


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ('{"acc":"VIEWERS","server":"a","id":7,"host":"1.2.3.4"}', "VIEWERS a 7"),
        ('{"acc":"VIEWERS"}', "VIEWERS  0"),
        ("[", ""),
    ],
)
def test_a_client_is_a_connection_of_a_server(told: str, name: str) -> None:
    delivery = Delivery("relay.VIEWERS.x", "r", b"", {"Nats-Request-Info": told})
    assert name_client(delivery) == name


def test_who_is_not_named_is_one_client() -> None:
    assert name_client(Delivery("relay.VIEWERS.x", "r", b"", {})) == "  0"
