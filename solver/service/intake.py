"""Bytes from the bus to messages for the Snapshot, and what to do with bad ones.

Pure: a received message in, what to believe (or why it is refused) out. A message
that contradicts its own subject is refused like one that cannot be read; a refused
submission is remembered, so that its sender gets an answer.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from contracts import messages
from contracts.allocation import Reason, Rule
from contracts.codec import Codec
from contracts.errors import ContractsError, SubjectError
from contracts.ids import ClusterName, GangUID, Namespace, NodeName
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    DevicesAnnounced,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    HealthJudged,
    NodeSeen,
    ObjectGone,
    ObjectObserved,
    ReleaseGang,
    SubmitGang,
)
from contracts.subjects import untoken
from runtime.wire import Received
from solver.snapshot.snapshot import InventoryExpired, SnapshotMessage


class Refused(Struct, frozen=True, kw_only=True):
    """A message that changes nothing, and why."""

    subject: str
    reason: str


class RefusedSubmission(Struct, frozen=True, kw_only=True):
    """A submission that cannot be read; its sender is told on the gang's subject."""

    namespace: Namespace
    uid: GangUID
    reason: Reason


class Seen(Struct, frozen=True, kw_only=True):
    """A heartbeat, or (away) that it expired."""

    node: NodeName
    away: bool


Intake = SnapshotMessage | Refused | RefusedSubmission | Seen | None
_CODECS: dict[str, Codec[Any]] = {
    "inv": messages.INVENTORY,
    "health": messages.HEALTH,
    "hb": messages.HEARTBEAT,
    "state": messages.STATE,
    "submit": messages.SUBMISSION,
    "cmd": messages.COMMAND,
    "dec": messages.DECISION,
    "conf": messages.CONFIRMATION,
}


def read_message(received: Received, cluster: ClusterName) -> Intake:
    """Say what a message of the bus means; None: nothing to us."""
    entity, *rest = received.subject.split(".")
    try:
        names = [untoken(token) for token in rest[1:]]
    except SubjectError as error:
        return Refused(subject=received.subject, reason=str(error))
    if entity == "hb" and len(names) == 2:
        return Seen(node=NodeName(names[1]), away=bool(received.gone))
    if received.gone:
        return _expired(entity, cluster, names)
    codec = _CODECS.get(entity)
    if codec is None:
        return None
    try:
        message: SnapshotMessage | NodeSeen = codec.decode(received.data)
        _check(message, cluster, names)
    except (ContractsError, ValueError) as error:
        if entity == "submit" and len(names) == 3:
            return RefusedSubmission(
                namespace=Namespace(names[1]),
                uid=GangUID(names[2]),
                reason=Reason(rule=Rule.INVALID, message=str(error)),
            )
        return Refused(subject=received.subject, reason=str(error))
    return None if isinstance(message, NodeSeen) else message


def _expired(
    entity: str, cluster: ClusterName, names: list[str]
) -> InventoryExpired | HealthJudged | None:
    """Say what it means that a message is gone; None: nothing to us."""
    if len(names) != 2:
        return None
    node = NodeName(names[1])
    if entity == "inv":
        return InventoryExpired(node=node)
    if entity == "health":
        return HealthJudged(cluster=cluster, node=node, devices=())
    return None


def _check(
    message: SnapshotMessage | NodeSeen, cluster: ClusterName, names: list[str]
) -> None:
    """Compare a message with its subject.

    Raises:
        ValueError: it says something else.
    """
    match message:
        case DevicesAnnounced() | HealthJudged():
            wanted = [message.cluster, message.node]
        case ObjectObserved() | ObjectGone():
            wanted = [message.cluster, message.kind, message.key]
        case SubmitGang():
            namespace = message.gang.metadata.namespace
            wanted = [message.cluster, namespace, message.uid]
        case (
            CancelGang()
            | ReleaseGang()
            | GangAllocated()
            | GangPending()
            | GangRejected()
            | GangReleased()
            | AllocationWritten()
            | GatesOpened()
            | AllocationRefused()
            | AllocationLost()
            | ClaimsReleased()
        ):
            wanted = [message.cluster, message.namespace, message.uid]
        case _:
            return
    if wanted != names or wanted[0] != cluster:
        raise ValueError(f"says {wanted}, but its subject says {names}")
