"""How long each stage of a gang's life took, by the clock of the bus; pure.

All times are those at which the server stored what was said, so no clock of ours is
compared with another. What was said before we began to count is remembered, not
counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from contracts.ids import GangKey
from contracts.lifecycle import LifecycleMessage
from contracts.messages import (
    AllocationWritten,
    DecisionMessage,
    GangAllocated,
    GangRejected,
    GangReleased,
    GatesOpened,
    SubmitGang,
)


class StageTaken(NamedTuple):
    """What one stage of a gang took."""

    stage: str
    queue: str
    """The namespace: gangs of one namespace are one line."""
    priority: int
    seconds: float


class _Times(Struct):
    """When things were said of a gang; 0: they were not."""

    queue: str
    priority: int
    submitted_s: float
    decided_s: float = 0.0
    """The first decision of any kind."""
    allocated_s: float = 0.0
    attempt: int = 0
    written_s: float = 0.0

    def take(self, stage: str, since_s: float, until_s: float) -> StageTaken:
        """End a stage."""
        return StageTaken(stage, self.queue, self.priority, until_s - since_s)


class Latencies:
    """The times of all gangs that are not over.

    Every message about a gang passes through `note`, so it is kept cheap: by plain
    pairs of namespace and uid, and by the type of a message.
    """

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], _Times] = {}

    def submitted_s(self, gang: GangKey) -> float | None:
        """When a gang was submitted; None: nobody heard."""
        times = self._times.get((gang.namespace, gang.uid))
        return None if times is None else times.submitted_s

    def oldest_s(self, gangs: Iterable[GangKey]) -> float | None:
        """When the oldest of these gangs was submitted."""
        known = (self.submitted_s(gang) for gang in gangs)
        return min((at_s for at_s in known if at_s is not None), default=None)

    def note(self, message: LifecycleMessage, time_s: float) -> list[StageTaken]:
        """Take note of what was said of a gang; return the stages that it ended."""
        if isinstance(message, SubmitGang):
            gang = message.gang
            queue = gang.metadata.namespace
            self._times[queue, message.uid] = _Times(
                queue=queue, priority=gang.spec.priority, submitted_s=time_s
            )
            return []
        gang_id = (message.namespace, message.uid)
        times = self._times.get(gang_id)
        if times is None:
            return []
        if isinstance(message, AllocationWritten):
            return _note_written(times, message, time_s)
        if isinstance(message, GatesOpened):
            is_ours = times.written_s and message.attempt == times.attempt
            return [times.take("gates", times.written_s, time_s)] if is_ours else []
        if not isinstance(message, DecisionMessage):
            return []
        if isinstance(message, GangReleased | GangRejected):
            del self._times[gang_id]
        return _note_decided(times, message, time_s)


def _note_decided(
    times: _Times, message: DecisionMessage, time_s: float
) -> list[StageTaken]:
    stages = []
    if not times.decided_s:
        times.decided_s = time_s
        stages.append(times.take("decision", times.submitted_s, time_s))
    # Who must go was in before.
    if isinstance(message, GangAllocated) and message.preempted is None:
        times.allocated_s, times.written_s = time_s, 0.0
        times.attempt = message.attempt
        if not message.kept:  # else it was in before, and has grown
            stages.append(times.take("allocated", times.submitted_s, time_s))
    return stages


def _note_written(
    times: _Times, message: AllocationWritten, time_s: float
) -> list[StageTaken]:
    if not times.allocated_s or message.attempt != times.attempt:
        return []
    times.written_s = time_s
    return [times.take("written", times.allocated_s, time_s)]
