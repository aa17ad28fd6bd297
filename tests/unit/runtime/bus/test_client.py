"""Headers and subjects of others are read as they stand, and cheaply."""

from __future__ import annotations

import pytest
from nats.protocol.parser import HMSG_RE, MSG_RE

from runtime.bus.client import MAX_HEADER_BYTES, TolerantClient, read_headers
from runtime.wire import OVERSIZED


def test_headers_and_a_status_are_read() -> None:
    assert read_headers(b"NATS/1.0\r\nA: b\r\nA:  c \r\n\r\n") == {"A": "c"}
    assert read_headers(b"NATS/1.0 404 No Messages\r\nNats-Num-Pending: 0\r\n\r\n") == {
        "Status": "404",
        "Description": "No Messages",
        "Nats-Num-Pending": "0",
    }
    assert read_headers(b"NATS/1.0 503\r\n\r\n") == {"Status": "503"}


def test_what_is_no_text_is_no_error() -> None:
    assert read_headers(b"NATS/1.0 \xff\xff\xff\r\n\xfe: \xff\r\nno colon\r\n\r\n") == {
        "\ufffd": "\ufffd"
    }
    assert read_headers(b"") == {}


def test_of_a_large_block_only_what_the_server_says_is_read() -> None:
    """It says it last, behind what the sender may have said in its name."""
    lines = b"Nats-Sequence: 7\r\n" + b"a: b\r\n" * MAX_HEADER_BYTES
    block = b"NATS/1.0\r\n" + lines + b"Nats-Sequence: 9\r\n\r\n"
    assert read_headers(block) == {"Nats-Sequence": "9", OVERSIZED: str(len(block))}


def test_a_subject_may_have_what_is_space_elsewhere() -> None:
    line = b"MSG a.\x0cb.\xff 3 _INBOX.x 5\r\n"
    found = MSG_RE.match(line)
    assert found is not None
    subject, sid, _, reply, size = found.groups()
    assert (subject, sid, reply, size) == (b"a.\x0cb.\xff", b"3", b"_INBOX.x", b"5")
    message = TolerantClient()._build_message(3, subject, reply, b"", None)
    assert message.subject == "a.\x0cb.\ufffd"
    headed = HMSG_RE.match(b"HMSG a.\x85 3 12 17\r\n")
    assert headed is not None
    assert headed.groups() == (b"a.\x85", b"3", None, None, b"12", b"17")


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
async def test_messages_that_nobody_wants_are_passed_over(size: int) -> None:
    """As far as they come whole; and what a body says is no message."""
    evil = b"MSG good 1 4\r\nevil\r\n"
    stream = b"".join(
        (
            b"MSG bad 1 3\r\none\r\n",
            b"MSG good 1 _INBOX.x 3\r\ntwo\r\n",
            b"MSG bad 1 _INBOX.x %d\r\n%b\r\n" % (len(evil), evil),
            b"HMSG bad 1 _INBOX.x 12 15\r\nNATS/1.0\r\n\r\nbad\r\n",
            b"HMSG good 1 12 17\r\nNATS/1.0\r\n\r\nthree\r\n",
            b"MSG good 1 %d\r\n%b\r\n" % (len(evil), evil),
            b"MSG bad 1 0\r\n\r\n",
            b"PING\r\n",
        )
    )
    heard: list[bytes] = []
    client = _Heard(heard)
    for at in range(0, len(stream), size):
        await client.parse(stream[at : at + size])

    wanted = [b"good two", b"good three", b"good " + evil, b"PING"]
    assert [said for said in heard if not said.startswith(b"bad")] == wanted
    if size >= len(stream):
        assert heard == wanted


class _Heard(TolerantClient):
    """Notes what it is told, and wants no message that is bad."""

    def __init__(self, heard: list[bytes]) -> None:
        super().__init__(lambda subject: subject == b"bad")
        self._heard = heard

    async def parse(self, data: bytes) -> None:
        await self._ps.parse(data)

    async def _process_ping(self) -> None:
        self._heard.append(b"PING")

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes
    ) -> None:
        del sid, reply, headers
        self._heard.append(subject + b" " + data)
