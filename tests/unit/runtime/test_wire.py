"""Messages as they travel."""

from __future__ import annotations

import pytest

from runtime.errors import MessageError
from runtime.wire import BusSettings, Outgoing, pack, republished, seconds, unpack


def test_every_option_becomes_a_header() -> None:
    """And none where nothing is asked for."""
    assert pack(Outgoing(subject="s", data=b"x")) == (b"x", {})
    _, headers = pack(
        Outgoing(
            subject="s",
            data=b"",
            headers={"Own": "1"},
            message_id="m",
            expected_last_subject_sequence=0,
        )
    )
    assert headers == {
        "Own": "1",
        "Nats-Msg-Id": "m",
        "Nats-Expected-Last-Subject-Sequence": "0",
    }


def test_compressed_bytes_come_back() -> None:
    """`unpack` undoes `pack`, and small is small."""
    body, headers = pack(Outgoing(subject="s", data=bytes(100_000), zstd=True))

    assert len(body) < 100
    assert unpack("s", body, headers, 7, 1.5).data == bytes(100_000)


@pytest.mark.parametrize(
    ("body", "encoding"), [(b"x", "gzip"), (b"no frame", "zstd"), (b"", "zstd")]
)
def test_what_cannot_be_unpacked_is_refused(body: bytes, encoding: str) -> None:
    """With the subject in the message."""
    with pytest.raises(MessageError, match="subject"):
        unpack("subject", body, {"Content-Encoding": encoding}, 1, 0.0)


def test_trailing_bytes_are_refused() -> None:
    """A frame with something hidden behind it."""
    body, headers = pack(Outgoing(subject="s", data=b"abc", zstd=True))

    with pytest.raises(MessageError):
        unpack("s", body + b"more", headers, 1, 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T00:00:01.123456789Z", 1.123456),
        ("1970-01-01T02:00:00+02:00", 0.0),
    ],
)
def test_server_times_are_read(text: str, expected: float) -> None:
    """With any number of digits."""
    assert seconds(text) == expected


def test_a_republished_message_names_its_origin() -> None:
    """Its headers do; without them it is what it is."""
    headers = {
        "Nats-Subject": "dec.v1.c.n.u",
        "Nats-Sequence": "9",
        "Nats-Time-Stamp": "1970-01-01T00:00:01Z",
    }
    message = republished("evt.dec.v1.c.n.u", b"", headers)
    assert (message.subject, message.sequence, message.time_s) == (
        "dec.v1.c.n.u",
        9,
        1.0,
    )
    assert republished("plain", b"", {}).subject == "plain"


def test_addresses_are_shown_without_passwords() -> None:
    servers = ("nats://who:secret@a:4222", "nats://b:4222", "who:secret@c:4222")
    settings = BusSettings(name="x", servers=servers)
    assert settings.addresses == "nats://a:4222,nats://b:4222,c:4222"
