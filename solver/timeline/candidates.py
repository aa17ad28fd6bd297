"""Who may have to end for whom, and what that costs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import floor

from msgspec import Struct

from contracts.lifecycle import GangRecord
from solver.queueing.gang_queue import own_priority_of
from solver.snapshot.snapshot import Snapshot
from solver.timeline.futures import list_results

NOBODY = -(2**31) - 1
"""Stands for the priority of the highest victim where there is none."""


class Candidate(Struct, frozen=True, kw_only=True, dict=True):
    """A gang that has its place, and might have to give it up."""

    record: GangRecord
    started_s: float
    """Seconds since the epoch, as the times below."""
    checkpointed_s: float | None = None
    """When it last saved its work; None: never."""

    @property
    def priority(self) -> int:
        """Its priority."""
        return own_priority_of(self.record)

    @cached_property
    def devices(self) -> int:
        """Count the devices that it holds."""
        return count_devices(self.record)

    @property
    def name(self) -> tuple[str, str, str]:
        """Namespace, name and uid: no two gangs have the same."""
        return self.record.namespace, self.record.name, self.record.uid

    def lost_s(self, now_s: float) -> int:
        """Count the device-seconds of work that its end would lose."""
        since = self.started_s if self.checkpointed_s is None else self.checkpointed_s
        return self.devices * max(floor(now_s - since), 0)


def count_devices(record: GangRecord) -> int:
    """Count the devices that a gang holds for itself; a share counts as one."""
    members = () if record.placed is None else record.placed.members
    return sum(not result.admin_access for result in list_results(members))


def make_candidate(snapshot: Snapshot, record: GangRecord) -> Candidate:
    """Read since when a gang has its place, and when it last saved its work."""
    members = () if record.placed is None else record.placed.members
    last_s = 0.0
    for node in {pod.node for pod in members}:
        for use in (snapshot.inventory.node_uses.get(node) or {}).values():
            if use.gang == record.key:
                last_s = max(last_s, use.checkpointed_s)
    since_s = record.placed_since_s
    saved_s = last_s if last_s > since_s else None
    return Candidate(record=record, started_s=since_s, checkpointed_s=saved_s)


class VictimCost(Struct, frozen=True, kw_only=True, order=True):
    """What a set of victims costs: the first field in which two differ decides."""

    priority: int = NOBODY
    """Of the highest victim."""
    lost_s: int = 0
    """Device-seconds since the last checkpoint, else since the start."""
    gangs: int = 0
    devices: int = 0
    youngest: tuple[tuple[float, tuple[str, str, str]], ...] = ()
    """(start, negated; name) of each, ascending: the youngest go first."""


def cost_of(victims: Iterable[Candidate], now_s: float) -> VictimCost:
    """Return what the end of these gangs costs."""
    chosen = list(victims)
    return VictimCost(
        priority=max((each.priority for each in chosen), default=NOBODY),
        lost_s=sum(each.lost_s(now_s) for each in chosen),
        gangs=len(chosen),
        devices=sum(each.devices for each in chosen),
        youngest=tuple(sorted(map(age_of, chosen))),
    )


def age_of(candidate: Candidate) -> tuple[float, tuple[str, str, str]]:
    """Return the key by which gangs are in order, the youngest first."""
    return -candidate.started_s, candidate.name


def may_end(candidate: GangRecord, waits: GangRecord) -> bool:
    """True if a gang may be a victim of one that waits: of strictly lower priority.

    By the priorities that authors gave: age makes nobody a victim. A gang that is
    ending is no victim, and one without a place would free nothing.
    """
    return (
        candidate.submission is not None
        and own_priority_of(candidate) < own_priority_of(waits)
        and candidate.in_force is not None
    )
