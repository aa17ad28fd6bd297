"""Priority by age: a gang that waits for long comes before those that came later.

By the annotation `moorings.dev/aging` of a ClusterQueue, such as `1h/10`: one step of
priority for each hour that a gang has waited, and ten at most. Off without it, or where
it cannot be read. Pure: the steps of a gang are noted in its record, and recorded with
what it was asked about.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from contracts.durations import parse_duration
from contracts.lifecycle import GangRecord
from contracts.names import OURS
from solver.problem.quota.queues import name_queue
from solver.snapshot.queues import QueueObjects
from solver.snapshot.snapshot import GangAged, Snapshot

AGING = f"{OURS}aging"
MOST_STEPS = 1000
FORM = f"a duration and how many steps at most, 1 to {MOST_STEPS}, such as 1h/10"


class Aging(Struct, frozen=True, kw_only=True):
    """How the gangs of a queue gain priority."""

    step_s: int
    """They gain one each so many seconds."""
    most: int

    def count_steps(self, waited_s: float) -> int:
        """Count the steps of a gang that has waited for so long."""
        return min(int(max(waited_s, 0.0) // self.step_s), self.most)


def read_aging(text: str) -> Aging:
    """Read what the annotation says.

    Raises:
        ValueError: it says something else.
    """
    step, _, most = text.partition("/")
    is_number = most.isascii() and most.isdigit() and len(most) <= len(str(MOST_STEPS))
    if not is_number or not 1 <= int(most) <= MOST_STEPS:
        raise ValueError(f"must be {FORM}")
    return Aging(step_s=parse_duration(step), most=int(most))


def find_agings(queues: QueueObjects) -> dict[str, Aging]:
    """Find the ClusterQueues whose gangs gain priority, by name."""
    agings = {}
    for name, queue in queues.cluster_queues.items():
        said = queue.metadata.annotations.get(AGING)
        if said is not None:
            with suppress(ValueError):
                agings[name] = read_aging(said)
    return agings


def count_steps(
    agings: dict[str, Aging], queues: QueueObjects, record: GangRecord, now_s: float
) -> int:
    """Count the steps that a gang has gained by now; 0 where its age is not known."""
    if not agings or record.submission is None or not record.waits_since_s:
        return 0
    aging = agings.get(name_queue(queues, record.submission.gang))
    return 0 if aging is None else aging.count_steps(now_s - record.waits_since_s)


def list_aged(snapshot: Snapshot, now_s: float) -> list[GangAged]:
    """List the gangs that wait and have other steps by now than were noted."""
    queues = snapshot.queues
    agings, aged = find_agings(queues), list[GangAged]()
    for record in snapshot.waiting.values():
        if agings or record.aged:
            steps = count_steps(agings, queues, record, now_s)
            if steps != record.aged:
                aged.append(GangAged(gang=record.key, steps=steps))
    return aged
