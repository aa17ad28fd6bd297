"""Streams as the table in topics.py wants them.

Turns a `Stream` into the server's configuration, creates what is missing and names
what differs; changes nothing that exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.topics import Stream
from runtime.bus.connection import Connection
from runtime.bus.jetstream import (
    STREAM_NAME_IN_USE,
    Nothing,
    StreamInfo,
    call_retried,
)
from runtime.errors import BusRefusedError, StreamDiffersError

_SECOND_NS = 1_000_000_000
_MARKER_TTL_S = 60


async def ensure_streams(
    connection: Connection, streams: Sequence[Stream], replicas: int
) -> None:
    """Create the streams that do not exist and compare those that do.

    Raises:
        StreamDiffersError: one exists with other settings.
    """
    for stream in streams:
        wanted = configuration(stream, replicas)
        try:
            operation = f"STREAM.CREATE.{stream.name}"
            await call_retried(connection, operation, wanted, Nothing)
        except BusRefusedError as error:
            if error.code != STREAM_NAME_IN_USE:
                raise
            operation = f"STREAM.INFO.{stream.name}"
            info = await call_retried(connection, operation, None, StreamInfo)
            if fields := differences(wanted, info.config):
                raise StreamDiffersError(stream.name, fields) from error


def configuration(stream: Stream, replicas: int) -> dict[str, Any]:
    """Write the server's configuration of a stream."""
    config: dict[str, Any] = {
        "name": stream.name,
        "subjects": list(stream.subjects),
        "retention": "limits",
        "storage": stream.storage,
        "num_replicas": replicas,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_msgs_per_subject": stream.per_subject,
        "max_bytes": stream.max_bytes,
        "max_age": stream.max_age_s * _SECOND_NS,
        "duplicate_window": stream.duplicate_window_s * _SECOND_NS,
        "discard": "new" if stream.write_once else "old",
        "discard_new_per_subject": stream.write_once,
        "allow_direct": True,
        "allow_atomic": stream.atomic,
        "allow_msg_ttl": stream.ttl,
        "compression": "s2" if stream.compressed else "none",
    }
    if stream.ttl:
        config["subject_delete_marker_ttl"] = _MARKER_TTL_S * _SECOND_NS
    if stream.republish:
        config["republish"] = {"src": ">", "dest": f"{stream.republish}.>"}
    return config


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the settings that are not as wanted; what we leave open is not compared."""
    return tuple(
        name
        for name, value in wanted.items()
        if (found.get(name) or None) != (value or None)
    )
