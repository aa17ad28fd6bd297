"""Subjects, streams and who may use them: one table.

The streams, the permissions and the AsyncAPI document are made from `STREAMS` and
`SUBJECTS`. Builders are the only place where a subject is spelled; `token` makes any
name a single legal token (`.` -> `_`, the rest as `=XX`), and `untoken` reverses it.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from contracts import messages, solves
from contracts.codec import Codec
from contracts.errors import SubjectError
from contracts.ids import ClusterName, GangUID, Namespace, NodeName, SolveID

_PLAIN = re.compile(r"[A-Za-z0-9-]")
MAX_TOKEN = 253 * 3
"""Characters; a Kubernetes name has at most 253."""


def token(name: str) -> str:
    """Make a name one token of a subject; reversible.

    Raises:
        SubjectError: the name is empty or too long.
    """
    if not name:
        raise SubjectError(name, "must not be empty")
    text = "".join(
        char
        if _PLAIN.match(char)
        else "_"
        if char == "."
        else "".join(f"={byte:02X}" for byte in char.encode())
        for char in name
    )
    if len(text) > MAX_TOKEN:
        raise SubjectError(name[:40] + "...", f"longer than {MAX_TOKEN} characters")
    return text


def untoken(text: str) -> str:
    """Reverse `token`.

    Raises:
        SubjectError: `token` makes no such text.
    """
    encoded = text.replace("_", ".").encode()
    try:
        return re.sub(
            rb"=([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), encoded
        ).decode()
    except UnicodeDecodeError as error:
        raise SubjectError(text, "is no name") from error


def inventory(cluster: ClusterName, node: NodeName) -> str:
    """Where a node agent announces its devices."""
    return f"inv.v1.{token(cluster)}.{token(node)}"


def health(cluster: ClusterName, node: NodeName) -> str:
    """Where a node agent says which devices are not healthy."""
    return f"health.v1.{token(cluster)}.{token(node)}"


def heartbeat(cluster: ClusterName, node: NodeName) -> str:
    """Where a node agent shows that it is alive."""
    return f"hb.v1.{token(cluster)}.{token(node)}"


def state(cluster: ClusterName, kind: str, key: str) -> str:
    """Where the publisher says what Kubernetes holds."""
    return f"state.v1.{token(cluster)}.{token(kind)}.{token(key)}"


def submit(cluster: ClusterName, namespace: Namespace, uid: GangUID) -> str:
    """Where a gang is submitted: written once."""
    return f"submit.v1.{token(cluster)}.{token(namespace)}.{token(uid)}"


def command(cluster: ClusterName, namespace: Namespace, uid: GangUID) -> str:
    """Where a gang is cancelled or released."""
    return f"cmd.v1.{token(cluster)}.{token(namespace)}.{token(uid)}"


def decision(cluster: ClusterName, namespace: Namespace, uid: GangUID) -> str:
    """Where the solver says what was decided for a gang."""
    return f"dec.v1.{token(cluster)}.{token(namespace)}.{token(uid)}"


def solved(cluster: ClusterName) -> str:
    """Where the solver ends a batch of decisions."""
    return f"solved.v1.{token(cluster)}"


def confirmation(cluster: ClusterName, namespace: Namespace, uid: GangUID) -> str:
    """Where the publisher says what became of a decision."""
    return f"conf.v1.{token(cluster)}.{token(namespace)}.{token(uid)}"


def fence(cluster: ClusterName) -> str:
    """Where the leading solver holds its epoch."""
    return f"fence.v1.{token(cluster)}"


def solve(cluster: ClusterName, solve_id: SolveID) -> str:
    """Where the manifest of a solve is kept."""
    return f"solve.v1.{token(cluster)}.{token(solve_id)}"


def blob(sha256: str, chunk: int) -> str:
    """Where one chunk of content-addressed bytes is kept."""
    return f"blob.v1.{token(sha256)}.{chunk}"


def blob_mark(sha256: str) -> str:
    """Where it is said that all chunks are there; written last."""
    return f"blob.v1.{token(sha256)}.ok"


def wildcard(entity: str, cluster: ClusterName, *tokens: str) -> str:
    """All subjects of an entity in a cluster, below the given names."""
    parts = [entity, "v1", token(cluster), *(token(name) for name in tokens), ">"]
    return ".".join(parts)


class Stream(Struct, frozen=True, kw_only=True):
    """How one JetStream stream is set up (settings are explained in docs/bus.md)."""

    name: str
    subjects: tuple[str, ...]
    storage: str = "file"
    per_subject: int = -1
    """Messages kept a subject; -1: all."""
    write_once: bool = False
    """A second message on a subject is refused."""
    max_age_s: int = 0
    """0: kept for ever."""
    max_bytes: int = -1
    atomic: bool = False
    ttl: bool = False
    """A message may carry a time to live; its end, and that by age, leaves a marker.

    The server then allows rollups too: one sender can remove the messages of all, and
    no marker follows. So it is for what its senders repeat, where a marker may speed a
    conclusion up and age suffices.
    """
    republish: str = ""
    """Prefix under which core subscribers get every stored message."""
    compressed: bool = True
    duplicate_window_s: int = 1
    """How long message ids are remembered; long only where one sender uses them."""


DAY_S = 86_400

STREAMS: tuple[Stream, ...] = (
    Stream(
        name="INV",
        subjects=("inv.v1.>",),
        per_subject=1,
        max_age_s=DAY_S,
        ttl=True,
        compressed=False,
    ),
    Stream(
        name="HEALTH",
        subjects=("health.v1.>",),
        per_subject=1,
        max_age_s=DAY_S,
        ttl=True,
        compressed=False,
    ),
    Stream(
        name="HB",
        subjects=("hb.v1.>",),
        per_subject=1,
        storage="memory",
        ttl=True,
        compressed=False,
    ),
    Stream(name="STATE", subjects=("state.v1.>",), per_subject=1),
    Stream(name="SUBMIT", subjects=("submit.v1.>",), per_subject=1, write_once=True),
    Stream(name="CMD", subjects=("cmd.v1.>",), per_subject=2),
    Stream(
        name="DEC",
        subjects=("dec.v1.>", "solved.v1.>", "fence.v1.>"),
        per_subject=16,
        atomic=True,
        republish="evt",
    ),
    Stream(name="CONF", subjects=("conf.v1.>",), per_subject=4),
    Stream(name="SOLVE", subjects=("solve.v1.>",), per_subject=2, max_age_s=7 * DAY_S),
    Stream(
        name="BLOB",
        subjects=("blob.v1.>",),
        per_subject=1,
        max_age_s=15 * DAY_S,
        compressed=False,
    ),
)


class SubjectRow(Struct, frozen=True, kw_only=True):
    """What travels on one entity's subjects, who sends it and who reads it."""

    entity: str
    pattern: str
    stream: str
    codec: Codec[Any]
    zstd: bool = False
    senders: tuple[str, ...]
    receivers: tuple[str, ...]


SUBJECTS: tuple[SubjectRow, ...] = (
    SubjectRow(
        entity="inv",
        pattern="inv.v1.<cluster>.<node>",
        stream="INV",
        codec=messages.INVENTORY,
        zstd=True,
        senders=("nodeagent",),
        receivers=("solver", "publisher"),
    ),
    SubjectRow(
        entity="health",
        pattern="health.v1.<cluster>.<node>",
        stream="HEALTH",
        codec=messages.HEALTH,
        senders=("nodeagent",),
        receivers=("solver", "publisher"),
    ),
    SubjectRow(
        entity="hb",
        pattern="hb.v1.<cluster>.<node>",
        stream="HB",
        codec=messages.HEARTBEAT,
        senders=("nodeagent",),
        receivers=("solver",),
    ),
    SubjectRow(
        entity="state",
        pattern="state.v1.<cluster>.<kind>.<key>",
        stream="STATE",
        codec=messages.STATE,
        zstd=True,
        senders=("publisher",),
        receivers=("solver",),
    ),
    SubjectRow(
        entity="submit",
        pattern="submit.v1.<cluster>.<namespace>.<uid>",
        stream="SUBMIT",
        codec=messages.SUBMISSION,
        senders=("platform", "publisher"),
        receivers=("solver", "publisher", "platform"),
    ),
    SubjectRow(
        entity="cmd",
        pattern="cmd.v1.<cluster>.<namespace>.<uid>",
        stream="CMD",
        codec=messages.COMMAND,
        senders=("platform", "publisher"),
        receivers=("solver", "publisher", "platform"),
    ),
    SubjectRow(
        entity="dec",
        pattern="dec.v1.<cluster>.<namespace>.<uid>",
        stream="DEC",
        codec=messages.DECISION,
        senders=("solver",),
        receivers=("solver", "publisher", "platform"),
    ),
    SubjectRow(
        entity="solved",
        pattern="solved.v1.<cluster>",
        stream="DEC",
        codec=messages.SOLVED,
        senders=("solver",),
        receivers=("publisher", "platform"),
    ),
    SubjectRow(
        entity="fence",
        pattern="fence.v1.<cluster>",
        stream="DEC",
        codec=messages.FENCE,
        senders=("solver",),
        receivers=("solver",),
    ),
    SubjectRow(
        entity="conf",
        pattern="conf.v1.<cluster>.<namespace>.<uid>",
        stream="CONF",
        codec=messages.CONFIRMATION,
        senders=("publisher",),
        receivers=("solver", "publisher", "platform"),
    ),
    SubjectRow(
        entity="solve",
        pattern="solve.v1.<cluster>.<id>",
        stream="SOLVE",
        codec=solves.SOLVE,
        senders=("solver",),
        receivers=("solver", "platform"),
    ),
)
