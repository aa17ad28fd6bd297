"""Streams as the table in topics.py wants them.

Turns a `Stream` into the server's configuration, creates what is missing, and brings
what is older up to date. Changes nothing that a newer version has set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from contracts.streams import SETTINGS_VERSION, UNUSED_CONSUMER_S, Stream
from runtime.bus.connection import Connection
from runtime.bus.jetstream import (
    NO_STREAM,
    Nothing,
    StreamInfo,
    call,
    call_retried,
)
from runtime.errors import BusRefusedError, StreamDiffersError
from runtime.log import get_logger
from runtime.wire import seconds

_SECOND_NS = 1_000_000_000
_VERSION = "moorings.dev/settings"
"""In the metadata of a stream: the version of its settings."""

log = get_logger(__name__)


class StreamUsage(Struct, frozen=True, kw_only=True):
    """How full a stream is, at a moment."""

    time_s: float
    """By the stream's leader, which stamps its messages; since the epoch."""
    bytes: int
    limit_bytes: int
    """Most bytes that it may take; 0: unlimited."""
    share: float
    """Of the room that it may take; 0: it has no bound."""
    subjects: int
    """On which it holds anything."""
    first_sequence: int
    last_sequence: int


class StreamHealth(Struct, frozen=True, kw_only=True):
    """How a stream is set up, and how its copies are."""

    replicas: int
    """Copies that there should be."""
    lagging: tuple[str, ...]
    """Servers whose copy is away or behind."""
    led: bool
    """True if it has a leader; always true of a single copy."""
    version: int
    """Version of its settings; 0: unknown."""
    different: tuple[str, ...]
    """The settings that are not as this version wants them, `num_replicas` aside."""
    share: float
    """Of the room that it may take; 0: it has no bound."""
    time_s: float
    """By the stream's leader; since the epoch."""


async def stream_health(connection: Connection, stream: Stream) -> StreamHealth:
    """Ask once how a stream is.

    Raises:
        BusError: it is not there, or may not be looked at; nobody answers.
    """
    info = await call(connection, f"STREAM.INFO.{stream.name}", None, StreamInfo)
    replicas = int(info.config.get("num_replicas") or 1)
    cluster = info.cluster
    return StreamHealth(
        replicas=replicas,
        lagging=tuple(
            peer.name for peer in cluster.replicas if peer.offline or not peer.current
        ),
        led=replicas == 1 or bool(cluster.leader),
        version=_version_of(info.config),
        different=differences(configuration(stream, replicas), info.config),
        share=_share_of_room(info),
        time_s=seconds(info.ts),
    )


def _share_of_room(info: StreamInfo) -> float:
    """Return the share of its room that a stream takes."""
    most = _limit_of_bytes(info)
    return info.state.bytes / most if most else 0.0


def _limit_of_bytes(info: StreamInfo) -> int:
    """Return how many bytes a stream may take; 0: unlimited."""
    return max(0, int(info.config.get("max_bytes") or 0))


async def stream_usage(connection: Connection, name: str) -> StreamUsage:
    """Ask how full a stream is."""
    info = await call_retried(connection, f"STREAM.INFO.{name}", None, StreamInfo)
    return StreamUsage(
        time_s=seconds(info.ts),
        bytes=info.state.bytes,
        limit_bytes=_limit_of_bytes(info),
        share=_share_of_room(info),
        subjects=info.state.num_subjects,
        first_sequence=info.state.first_seq,
        last_sequence=info.state.last_seq,
    )


async def ensure_streams(
    connection: Connection, streams: Sequence[Stream], replicas: int
) -> None:
    """Create the streams that do not exist, and bring older ones up to date.

    What has settings of a newer version is left as it is, so that two versions beside
    each other do not change it back and forth.

    Raises:
        StreamDiffersError: one exists whose settings the server does not change.
    """
    for stream in streams:
        wanted = configuration(stream, replicas)
        # Asked first: a server whose room is all set apart refuses to create a stream
        # that exists, before it says that it does.
        try:
            operation = f"STREAM.INFO.{stream.name}"
            info = await call_retried(connection, operation, None, StreamInfo)
        except BusRefusedError as error:
            if error.code != NO_STREAM:
                raise
            operation = f"STREAM.CREATE.{stream.name}"
            await call_retried(connection, operation, wanted, Nothing)
        else:
            await _update_stream(connection, stream.name, wanted, info.config)


async def _update_stream(
    connection: Connection, name: str, wanted: dict[str, Any], found: dict[str, Any]
) -> None:
    """Give a stream the wanted settings, unless its own are newer."""
    fields, version = differences(wanted, found), _version_of(found)
    if version > SETTINGS_VERSION:
        if fields:
            log.warning(
                "stream.newer", stream=name, version=version, fields=list(fields)
            )
        return
    if not fields and version == SETTINGS_VERSION:
        return
    metadata = {**(found.get("metadata") or {}), **wanted["metadata"]}
    config = {**found, **wanted, "metadata": metadata}
    try:
        await call_retried(connection, f"STREAM.UPDATE.{name}", config, Nothing)
    except BusRefusedError as error:
        raise StreamDiffersError(name, fields, error.reason) from error
    log.warning(
        "stream.updated",
        stream=name,
        version=SETTINGS_VERSION,
        fields={field: [found.get(field), wanted[field]] for field in fields},
    )


def _version_of(config: Mapping[str, Any]) -> int:
    """Return the version of a stream's settings; 0: unknown."""
    text = (config.get("metadata") or {}).get(_VERSION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def configuration(stream: Stream, replicas: int) -> dict[str, Any]:
    """Write the server's configuration of a stream."""
    config: dict[str, Any] = {
        "name": stream.name,
        "subjects": list(stream.subjects),
        "retention": "limits",
        "storage": stream.storage,
        "num_replicas": replicas,
        "max_consumers": -1,
        "consumer_limits": {"inactive_threshold": UNUSED_CONSUMER_S * _SECOND_NS},
        "max_msgs": -1,
        "max_msgs_per_subject": stream.per_subject,
        "max_bytes": stream.max_bytes,
        "max_age": stream.max_age_s * _SECOND_NS,
        "duplicate_window": stream.duplicate_window_s * _SECOND_NS,
        "discard": "old" if stream.disposable else "new",
        "discard_new_per_subject": stream.write_once,
        "allow_direct": True,
        "allow_atomic": stream.atomic,
        "max_msg_size": stream.max_message_bytes,
        # With it 2.15.1 cannot read a stream again after some crashes: "s2: corrupt".
        "compression": "none",
        "metadata": {_VERSION: str(SETTINGS_VERSION)},
    }
    if stream.republish:
        config["republish"] = {"src": ">", "dest": f"{stream.republish}.>"}
    return config


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the settings that are not as wanted; what we leave open is not compared."""
    return tuple(
        name
        for name, value in wanted.items()
        if name != "metadata" and (found.get(name) or None) != (value or None)
    )
