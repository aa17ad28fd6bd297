"""The streams that store the topics, and how much of each: their settings.

Every stream is bounded. What people look things up in (records) has room of its own and
gives up its oldest; what decisions follow from refuses what it has no room for, so that
nothing of it is lost unseen. See docs/bus.md.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.topics import BLOBS, DAY_S, HEARTBEAT_S, HOUR_S, TOPICS, VERSION

SETTINGS_VERSION = 7
"""Of the settings below: grows by one with each change of them. Who creates streams
brings older ones up to date, and leaves newer ones as they are."""

UNUSED_CONSUMER_S = 300
"""A consumer of which nobody asks anything for so long ends, whatever its maker said:
nobody can leave behind so many that others get none."""

_MIB = 1 << 20
_GIB = 1 << 30


class Stream(Struct, frozen=True, kw_only=True):
    """How one JetStream stream is set up."""

    name: str
    subjects: tuple[str, ...]
    storage: str = "file"
    per_subject: int = -1
    """Messages kept a subject; -1: all."""
    write_once: bool = False
    """A second message on a subject is refused."""
    max_age_s: int = 0
    """0: kept for ever."""
    max_bytes: int
    """Room that the server sets apart for it."""
    max_message_bytes: int = -1
    """As it travels; a larger one is refused."""
    disposable: bool = False
    """Without room the oldest messages go; else the newest is refused."""
    atomic: bool = False
    republish: str = ""
    """Prefix under which core subscribers get every stored message."""
    duplicate_window_s: int = 1
    """How long message ids are remembered; long only where one sender uses them."""


def _subjects_in(stream: str) -> tuple[str, ...]:
    """List the subjects that a stream stores, as wildcards."""
    families = (*TOPICS, BLOBS)
    return tuple(f"{f.entity}.{VERSION}.>" for f in families if f.stream == stream)


STREAMS: tuple[Stream, ...] = (
    Stream(
        name="INV",
        subjects=_subjects_in("INV"),
        max_bytes=1 * _GIB,
        per_subject=1,
        max_age_s=DAY_S,
        max_message_bytes=1 * _MIB,
    ),
    Stream(
        name="HEALTH",
        subjects=_subjects_in("HEALTH"),
        max_bytes=256 * _MIB,
        per_subject=1,
        max_age_s=DAY_S,
        max_message_bytes=1 * _MIB,
    ),
    Stream(
        name="HB",
        subjects=_subjects_in("HB"),
        max_bytes=64 * _MIB,
        max_message_bytes=4 << 10,
        disposable=True,
        per_subject=1,
        max_age_s=HEARTBEAT_S,
        storage="memory",
    ),
    Stream(
        name="STATE",
        subjects=_subjects_in("STATE"),
        max_bytes=2 * _GIB,
        per_subject=1,
    ),
    Stream(
        name="SUBMIT",
        subjects=_subjects_in("SUBMIT"),
        max_bytes=2 * _GIB,
        per_subject=1,
        write_once=True,
    ),
    Stream(
        name="CMD",
        subjects=_subjects_in("CMD"),
        max_bytes=256 * _MIB,
        max_message_bytes=8 << 10,
        per_subject=2,
    ),
    Stream(
        name="DEC",
        subjects=_subjects_in("DEC"),
        max_bytes=3 * _GIB,
        per_subject=16,
        atomic=True,
        republish="evt",
    ),
    Stream(
        name="CONF",
        subjects=_subjects_in("CONF"),
        max_bytes=1 * _GIB,
        per_subject=4,
    ),
    Stream(
        name="REPORT",
        subjects=_subjects_in("REPORT"),
        max_bytes=256 * _MIB,
        disposable=True,
        per_subject=1,
        max_age_s=HOUR_S,
    ),
    Stream(
        name="LEADS",
        subjects=_subjects_in("LEADS"),
        max_bytes=16 * _MIB,
        disposable=True,
        per_subject=1,
    ),
    Stream(
        name="AVOID",
        subjects=_subjects_in("AVOID"),
        max_bytes=64 * _MIB,
        disposable=True,
        per_subject=1,
        max_age_s=DAY_S,
    ),
    Stream(
        name="SOLVE",
        subjects=_subjects_in("SOLVE"),
        max_bytes=512 * _MIB,
        disposable=True,
        per_subject=2,
        max_age_s=7 * DAY_S,
    ),
    Stream(
        name="BLOB",
        subjects=_subjects_in("BLOB"),
        max_bytes=5 * _GIB,
        disposable=True,
        atomic=True,
        per_subject=1,
        max_age_s=15 * DAY_S,
    ),
)
