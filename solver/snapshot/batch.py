"""Which gangs are decided together.

All that wait and were not tried since capacity grew: by priority, then by age, as
many as one solve should take. The rest comes next, so that a large backlog never
keeps the bus waiting for one answer. Knows no devices.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from contracts.ids import GangUID
from contracts.lifecycle import GangRecord
from solver.snapshot.snapshot import Snapshot


class BatchLimits(Struct, frozen=True, kw_only=True):
    """How much one solve takes."""

    gangs: int = 256
    pods: int = 2048
    """A single gang may have more."""


def choose_batch(
    snapshot: Snapshot,
    limits: BatchLimits,
    *,
    resting: Container[GangUID] = frozenset(),
) -> tuple[GangRecord, ...]:
    """Choose the gangs of the next solve, most urgent first; empty: nothing to do.

    `resting` gangs are left out: their last decision could not be written just now.
    """
    ready = sorted(
        (
            record
            for record in snapshot.waiting.values()
            if _is_ready(record, snapshot) and record.uid not in resting
        ),
        key=urgency_of,
    )
    chosen: list[GangRecord] = []
    pods = 0
    for record in ready[: limits.gangs]:
        pods += count_pods(record)
        if chosen and pods > limits.pods:
            break
        chosen.append(record)
    return tuple(chosen)


def _is_ready(record: GangRecord, snapshot: Snapshot) -> bool:
    """Whether capacity grew since a solve last said no to a gang."""
    attempted_at = snapshot.attempted_at.get(record.uid)
    return attempted_at is None or attempted_at < snapshot.capacity_generation


def urgency_of(record: GangRecord) -> tuple[int, int, str]:
    """Order gangs: priority first, then age."""
    priority = record.submission.gang.spec.priority if record.submission else 0
    return (-priority, record.submission_sequence, record.uid)


def count_pods(record: GangRecord) -> int:
    """Count the pods of a gang."""
    if record.submission is None:
        return 0
    return sum(member.count for member in record.submission.gang.spec.members)
