"""How long a queue's gangs wait before devices are kept for them, or others must go.

By annotations of the ClusterQueue, `moorings.dev/patience`, `moorings.dev/reservations`
and `moorings.dev/preemption-delay`; where they say nothing, or nothing that can be
read, the solver's own patience and one reservation count, and nobody must go.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from contracts.durations import parse_duration
from contracts.ids import Namespace
from contracts.lifecycle import GangRecord
from contracts.names import OURS
from solver.problem.quota.queues import name_queue
from solver.queueing.turns import LineName
from solver.snapshot.snapshot import Snapshot

NEVER = -1
"""A patience that never ends."""
PATIENCE = f"{OURS}patience"
RESERVATIONS = f"{OURS}reservations"
PREEMPTION_DELAY = f"{OURS}preemption-delay"
MOST_RESERVATIONS = 16


class QueueTerms(Struct, frozen=True, kw_only=True):
    """On which terms gangs of a queue get reservations, and the places of others."""

    patience_s: int
    reservations: int = 1
    preemption_delay_s: int = NEVER
    """How long a gang waits before others must go for it; `NEVER`: none must."""


def read_patience(text: str) -> int:
    """Read a patience: a duration, `0s` or `never`, in seconds.

    Raises:
        ValueError: it is none of these.
    """
    if text == "never":
        return NEVER
    return 0 if text == "0s" else parse_duration(text)


def read_reservations(text: str) -> int:
    """Read how many gangs of a queue may have a reservation; more than most are most.

    Raises:
        ValueError: it is no number.
    """
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"must be a number, 0 to {MOST_RESERVATIONS}")
    return min(int(text[:3]), MOST_RESERVATIONS)


def read_terms(
    snapshot: Snapshot, cluster_queue: str, patience_s: int, reservations: int = 1
) -> QueueTerms:
    """Read the terms of a ClusterQueue; the others count where it says nothing."""
    queue = snapshot.queues.cluster_queues.get(cluster_queue)
    said = {} if queue is None else queue.metadata.annotations
    delay_s = NEVER
    with suppress(ValueError):
        patience_s = read_patience(said[PATIENCE]) if PATIENCE in said else patience_s
    with suppress(ValueError):
        delay_s = read_patience(said.get(PREEMPTION_DELAY, "never"))
    with suppress(ValueError):
        reservations = read_reservations(said.get(RESERVATIONS, f"{reservations}"))
    return QueueTerms(
        patience_s=patience_s,
        reservations=min(reservations, MOST_RESERVATIONS),
        preemption_delay_s=delay_s,
    )


def line_of(snapshot: Snapshot, record: GangRecord) -> LineName:
    """Name the queue of a gang, or where it has none its namespace."""
    submission = record.submission
    queue = "" if submission is None else name_queue(snapshot.queues, submission.gang)
    return (queue, Namespace("") if queue else record.namespace)
