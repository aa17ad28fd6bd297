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

    priority: int
    submitted_s: float
    decided_s: float = 0.0
    """The first decision of any kind."""
    allocated_s: float = 0.0
    attempt: int = 0
    written_s: float = 0.0


class Latencies:
    """The times of all gangs that are not over."""

    def __init__(self) -> None:
        self._times: dict[GangKey, _Times] = {}

    def submitted_s(self, gang: GangKey) -> float | None:
        """When a gang was submitted; None: nobody heard."""
        times = self._times.get(gang)
        return None if times is None else times.submitted_s

    def oldest_s(self, gangs: Iterable[GangKey]) -> float | None:
        """When the oldest of these gangs was submitted."""
        known = (self.submitted_s(gang) for gang in gangs)
        return min((at_s for at_s in known if at_s is not None), default=None)

    def note(self, message: LifecycleMessage, time_s: float) -> list[StageTaken]:
        """Take note of what was said of a gang; return the stages that it ended."""
        gang = message.key
        if isinstance(message, SubmitGang):
            priority = message.gang.spec.priority
            self._times[gang] = _Times(priority=priority, submitted_s=time_s)
            return []
        times = self._times.get(gang)
        if times is None:
            return []
        stages = _note(times, message, time_s)
        if isinstance(message, GangReleased | GangRejected):
            del self._times[gang]
        return [
            StageTaken(stage, gang.namespace, times.priority, time_s - since_s)
            for stage, since_s in stages
            if since_s
        ]


def _note(
    times: _Times, message: LifecycleMessage, time_s: float
) -> list[tuple[str, float]]:
    """Take note of a message; return the stages that end, and when they began."""
    match message:
        case GangAllocated(attempt=attempt):
            stages = [("allocated", times.submitted_s)]
            if not times.decided_s:
                stages.append(("decision", times.submitted_s))
                times.decided_s = time_s
            times.allocated_s, times.attempt, times.written_s = time_s, attempt, 0.0
            return stages
        case AllocationWritten(attempt=times.attempt):
            times.written_s = time_s
            return [("written", times.allocated_s)]
        case GatesOpened(attempt=times.attempt):
            return [("gates", times.written_s)]
        case _ if isinstance(message, DecisionMessage) and not times.decided_s:
            times.decided_s = time_s
            return [("decision", times.submitted_s)]
        case _:
            return []
