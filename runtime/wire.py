"""Messages to and from the bus, as values.

Turns messages into headers and bytes and back: compression, compare and set. Stands
alone so that every way of sending and reading agrees on it; must not know the client
library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Generic

import zstandard
from msgspec import Struct

from contracts.topics import M, Topic, max_bytes_of
from runtime import users
from runtime.errors import MessageError
from runtime.settings import ServiceConfig

_ZSTD_LEVEL = 3
_NANOSECONDS = re.compile(r"(\.\d{6})\d+")

ENCODING = "Content-Encoding"
OVERSIZED = "Moorings-Oversized-Headers"
"""Stands for headers that were too large to be read, with their bytes."""
TOO_LARGE = "Moorings-Too-Large"
"""Stands for a body that no page has room for, with its bytes."""
MESSAGE_ID = "Nats-Msg-Id"
_CREDENTIALS = re.compile(r"^([^/@]*://)?.*@")
EXPECTED_LAST_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"


class BusSettings(Struct, frozen=True, kw_only=True):
    """The bus's address, and our user."""

    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    name: str
    """Shown by the server's monitoring."""
    replicas: int = 1
    """Copies of each stream; 3 on a cluster of servers."""
    ca_file: str = ""
    """CA of the servers, as PEM; empty: no TLS."""
    user: str = ""
    """Empty: anonymous."""
    password_file: str = ""
    """Holds the user's password, or `login:password`; read for each connection."""
    cloud_events: bool = False
    """True if messages about gangs have the attributes of CloudEvents as headers."""
    request_timeout_s: float = 5.0
    """One attempt; attempts are repeated (retry.py)."""

    @classmethod
    def of(cls, config: ServiceConfig, name: str) -> BusSettings:
        """Take the settings from a service's configuration."""
        return cls(
            servers=config.servers,
            name=name,
            replicas=config.replicas,
            ca_file=config.bus_ca_file,
            user=config.bus_user,
            password_file=config.bus_password_file,
            cloud_events=config.cloud_events,
        )

    @property
    def addresses(self) -> str:
        """Where the servers are, for people: without the passwords in their URLs."""
        return ",".join(_CREDENTIALS.sub(r"\1", server) for server in self.servers)

    @property
    def inbox_prefix(self) -> str:
        """Prefix of subjects for answers, which only this user may read."""
        return users.inbox_prefix(self.user)

    @property
    def api_prefix(self) -> str:
        """Prefix of subjects for JetStream requests; depends on the account."""
        return users.api_prefix(self.user)

    def max_message_bytes(self, server_bytes: int) -> int:
        """Return the largest message that we may send, if the server takes so many."""
        return users.max_message_bytes(self.user, server_bytes)

    @property
    def is_outside(self) -> bool:
        """True if a relay carries out what we ask of JetStream."""
        return users.is_outside(self.user)


class Outgoing(Struct, frozen=True, kw_only=True):
    """A message to publish."""

    subject: str
    data: bytes
    """Plain bytes, also with `zstd`."""
    zstd: bool = False
    message_type: str = ""
    """Such as `GangAllocated`; empty: not needed besides the bytes."""
    headers: dict[str, str] = {}
    message_id: str = ""
    """The stream drops a second message with this id inside its duplicate window."""
    expected_last_subject_sequence: int | None = None
    """Refuse as stale unless this is the subject's last; 0: the subject is new."""

    @classmethod
    def of(
        cls,
        topic: Topic[M],
        message: M,
        *,
        expected_last_subject_sequence: int | None = None,
    ) -> Outgoing:
        """Address a message on the subject of its topic."""
        return cls(
            subject=topic.subject_of(message),
            data=topic.codec.encode(message),
            zstd=topic.zstd,
            message_type=type(message).__name__,
            expected_last_subject_sequence=expected_last_subject_sequence,
        )


class Received(Struct, frozen=True, kw_only=True):
    """A message of a stream."""

    subject: str
    """The subject it was published on, also when it came by a republish."""
    data: bytes
    sequence: int
    time_s: float
    """When the server stored it, seconds since the epoch."""
    headers: dict[str, str] = {}


class Refused(Struct, frozen=True, kw_only=True):
    """A message that changes nothing, and why."""

    subject: str
    field: str = ""
    """The path inside it; empty: all of it, or unknown."""
    reason: str
    sequence: int


class Fetched(Struct, frozen=True, kw_only=True):
    """The messages that a follower got at once; empty when the stream is quiet."""

    messages: tuple[Received, ...]
    refused: tuple[Refused, ...] = ()
    """Messages that could not be unpacked."""
    synced: bool
    """Everything that existed when the follower began has been delivered."""
    restarted: bool = False
    """The stream is another one, or lost messages: what came before may be gone."""
    pending: int = 0
    """Messages that were stored and still to come behind these."""
    read_up_to: int = 0
    """The last sequence that was read, though it may have been passed over."""


class Incoming(Struct, Generic[M], frozen=True, kw_only=True):
    """A message of a topic that was read, and belongs to its subject."""

    topic: Topic[M]
    names: tuple[str, ...]
    """The names in its subject, the cluster first."""
    message: M | None
    """None: nothing was said on the subject for as long as the topic lasts."""
    data: bytes
    sequence: int
    time_s: float = 0.0
    """When the server stored it, seconds since the epoch."""
    traceparent: str = ""
    """The trace that it belongs to (W3C Trace Context); empty: none."""

    @property
    def subject(self) -> str:
        """The subject that it came on."""
        return self.topic.subject(*self.names)

    @classmethod
    def end(cls, topic: Topic[M], subject: str) -> Incoming[M]:
        """Make the end of a subject: its last message no longer counts."""
        names = topic.names_of(subject)
        return cls(topic=topic, names=names, message=None, data=b"", sequence=0)

    @classmethod
    def of(cls, topic: Topic[M], received: Received) -> Incoming[M]:
        """Read what came on a subject of the topic.

        Raises:
            ContractsError: it cannot be read, or belongs to another subject.
        """
        names = topic.names_of(received.subject)
        return cls(
            topic=topic,
            names=names,
            message=topic.decode(names, received.data),
            data=received.data,
            sequence=received.sequence,
            time_s=received.time_s,
            traceparent=received.headers.get("traceparent", ""),
        )


class TopicBatch(Struct, Generic[M], frozen=True, kw_only=True):
    """The messages that a reader got at once; empty when its topics are quiet."""

    messages: tuple[Incoming[M], ...]
    refused: tuple[Refused, ...] = ()
    """Already counted and logged."""
    caught_up: bool
    """Everything that existed when the reader began was in this batch or before."""
    restarted: bool = False
    """The stream is another one, or lost messages: what came before may be gone."""
    read_up_to: int = 0
    """The last sequence that was read, though it may have been passed over."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the last message in it; 0: there is none."""
        sequences = [message.sequence for message in self.messages]
        sequences += [message.sequence for message in self.refused]
        return max(sequences, default=0)


def pack(message: Outgoing) -> tuple[bytes, dict[str, str]]:
    """Give the body and the headers that travel."""
    headers = dict(message.headers)
    body = message.data
    if message.zstd:
        body = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(body)
        headers[ENCODING] = "zstd"
    if message.message_id:
        headers[MESSAGE_ID] = message.message_id
    if message.expected_last_subject_sequence is not None:
        expected = message.expected_last_subject_sequence
        headers[EXPECTED_LAST_SUBJECT_SEQUENCE] = str(expected)
    return body, headers


def unpack(
    subject: str, body: bytes, headers: Mapping[str, str], sequence: int, time_s: float
) -> Received:
    """Read a message as it travelled.

    Raises:
        MessageError: the body does not unpack, or to more than its topic allows, or
            its headers are too large.
    """
    if size := headers.get(OVERSIZED):
        raise MessageError(subject, f"has {size} bytes of headers", sequence)
    if size := headers.get(TOO_LARGE):
        raise MessageError(subject, f"has {size} bytes, more than a page", sequence)
    try:
        data = _decode_body(subject, body, headers.get(ENCODING, ""))
    except MessageError as error:
        raise MessageError(subject, error.reason, sequence) from error
    return Received(
        subject=subject,
        data=data,
        sequence=sequence,
        time_s=time_s,
        headers=dict(headers),
    )


def republished(subject: str, body: bytes, headers: Mapping[str, str]) -> Received:
    """Read a message that came without a consumer.

    The headers of a republish, where there are any, name its subject and sequence.

    Raises:
        MessageError: as `unpack`.
    """
    stored_at = headers.get("Nats-Time-Stamp")
    return unpack(
        headers.get("Nats-Subject", subject),
        body,
        headers,
        int(headers.get("Nats-Sequence", "0")),
        seconds(stored_at) if stored_at else 0.0,
    )


def _decode_body(subject: str, body: bytes, encoding: str) -> bytes:
    limit = max_bytes_of(subject)
    if encoding == "":
        if len(body) > limit:
            raise MessageError(subject, f"has {len(body)} bytes, more than {limit}")
        return body
    if encoding != "zstd":
        raise MessageError(subject, f"unknown {ENCODING} {encoding[:40]!r}")
    try:
        declared = zstandard.get_frame_parameters(body).content_size
        if zstandard.CONTENTSIZE_UNKNOWN != declared > limit:
            reason = f"unpacks to {declared} bytes, more than {limit}"
            raise MessageError(subject, reason)
        return zstandard.ZstdDecompressor().decompress(
            body, max_output_size=limit, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise MessageError(subject, f"does not unpack: {error}") from error


def seconds(timestamp: str) -> float:
    """Read a server's RFC 3339 time; microseconds are kept."""
    return datetime.fromisoformat(_NANOSECONDS.sub(r"\1", timestamp)).timestamp()
