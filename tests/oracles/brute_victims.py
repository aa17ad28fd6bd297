"""Victims by brute force: every subset of whole gangs, on small fleets.

Written from the rules alone (cost in its order, who may be a victim of whom) and shares
no code with the search: nodes are numbers, pods are put on them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Key = tuple[object, ...]


@dataclass(frozen=True)
class Runs:
    """A gang that runs: what each of its pods has of which node."""

    name: str
    priority: int
    started_s: int
    checkpointed_s: int | None
    pods: tuple[tuple[str, int, int], ...]
    """(node, devices, CPUs)."""
    ends: bool = False

    @property
    def devices(self) -> int:
        """Count the devices that it holds."""
        return sum(devices for _, devices, _ in self.pods)


@dataclass(frozen=True)
class Wants:
    """A gang that waits: pods of each kind."""

    priority: int
    members: tuple[tuple[int, int, int], ...]
    """(pods, devices of each, CPUs of each)."""
    in_rack: bool = False


@dataclass(frozen=True)
class PlainFleet:
    """Nodes by name: (devices, CPUs, rack)."""

    nodes: Mapping[str, tuple[int, int, str]]


def find_cheapest(
    fleet: PlainFleet, running: Sequence[Runs], wants: Wants, now_s: int
) -> frozenset[str] | None:
    """Find the cheapest set whose end lets the gang in; None: there is none."""
    legal = [g for g in running if g.priority < wants.priority and not g.ends]
    best: tuple[Key, frozenset[str]] | None = None
    for size in range(len(legal) + 1):
        for chosen in combinations(legal, size):
            cost = cost_of(chosen, now_s)
            if (best is None or cost < best[0]) and fits(fleet, running, wants, chosen):
                best = cost, frozenset(gang.name for gang in chosen)
    return None if best is None else best[1]


def cost_of(chosen: Sequence[Runs], now_s: int) -> Key:
    """Order sets of victims: the first is the cheapest."""
    lost = 0
    for gang in chosen:
        since = gang.started_s
        if gang.checkpointed_s is not None:
            since = gang.checkpointed_s
        lost += gang.devices * max(now_s - since, 0)
    return (
        max((gang.priority for gang in chosen), default=float("-inf")),
        lost,
        len(chosen),
        sum(gang.devices for gang in chosen),
        sorted((-gang.started_s, gang.name) for gang in chosen),
    )


def fits(
    fleet: PlainFleet, running: Iterable[Runs], wants: Wants, ended: Iterable[Runs]
) -> bool:
    """True if the gang has a place once some have ended."""
    gone = {gang.name for gang in ended}
    left = {name: [devices, cpus] for name, (devices, cpus, _) in fleet.nodes.items()}
    for gang in running:
        if gang.name in gone:
            continue
        for node, devices, cpus in gang.pods:
            left[node][0] -= devices
            left[node][1] -= cpus
    racks: dict[str, list[tuple[int, int]]] = {}
    for name, (_, _, rack) in fleet.nodes.items():
        racks.setdefault(rack if wants.in_rack else "", []).append(
            (left[name][0], left[name][1])
        )
    pods = [kind for kind in wants.members for _ in range(kind[0])]
    return any(_place(tuple(nodes), tuple(pods)) for nodes in racks.values())


def _place(
    nodes: tuple[tuple[int, int], ...], pods: tuple[tuple[int, int, int], ...]
) -> bool:
    """Put the first pod on each kind of node in turn, then the others."""
    if not pods:
        return True
    (_, devices, cpus), tried = pods[0], set()
    for number, (free, cores) in enumerate(nodes):
        if free < devices or cores < cpus or (free, cores) in tried:
            continue
        tried.add((free, cores))
        left = [*nodes]
        left[number] = free - devices, cores - cpus
        if _place(tuple(sorted(left)), pods[1:]):
            return True
    return False
