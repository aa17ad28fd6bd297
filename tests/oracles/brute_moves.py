"""Moves of gangs by brute force on tiny fleets, and a check of every step.

Written from the rules alone, in plain numbers: a node has so many equal devices, and a
gang pods that each need some of them on one node. Shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Place = tuple[str, frozenset[str]]
"""The node of a pod, and the devices that it has there."""


@dataclass(frozen=True)
class SizedGang:
    """The pods of a gang, and where they are."""

    sizes: tuple[int, ...]
    """Devices of each pod."""
    nodes: tuple[str, ...] = ()
    """Of each pod; none: it waits."""


def count_fewest(
    fleet: Mapping[str, int],
    gangs: Mapping[str, SizedGang],
    free_nodes: int,
    wants: SizedGang | None = None,
) -> int | None:
    """Count the fewest gangs to move, each once; None: no moves are enough."""
    if not _is_possible(fleet, gangs, free_nodes, wants):
        return None
    start = tuple((name, gang.nodes) for name, gang in sorted(gangs.items()))
    states = {(start, frozenset[str]())}
    for moves in range(len(gangs) + 1):
        if any(_is_enough(fleet, gangs, s, free_nodes, wants) for s, _ in states):
            return moves
        states = {
            after for state in states for after in _list_moves(fleet, gangs, *state)
        }
    return None


def _is_possible(
    fleet: Mapping[str, int],
    gangs: Mapping[str, SizedGang],
    free_nodes: int,
    wants: SizedGang | None,
) -> bool:
    """True if all of them fit beside free nodes, put anywhere."""
    sizes = [size for gang in gangs.values() for size in gang.sizes]
    sizes += [] if wants is None else wants.sizes
    pods = tuple(sorted(sizes, reverse=True))
    return any(
        next(_list_places({n: fleet[n] for n in kept}, pods), None) is not None
        for kept in combinations(fleet, len(fleet) - free_nodes)
    )


State = tuple[tuple[str, tuple[str, ...]], ...]


def _list_moves(
    fleet: Mapping[str, int],
    gangs: Mapping[str, SizedGang],
    state: State,
    moved: frozenset[str],
) -> Iterator[tuple[State, frozenset[str]]]:
    for name, _ in state:
        if name in moved:
            continue
        others = {each: nodes for each, nodes in state if each != name}
        left = _count_left(fleet, gangs, others)
        for nodes in _list_places(left, gangs[name].sizes):
            after = tuple(sorted({**others, name: nodes}.items()))
            yield after, moved | {name}


def _is_enough(
    fleet: Mapping[str, int],
    gangs: Mapping[str, SizedGang],
    state: State,
    free_nodes: int,
    wants: SizedGang | None,
) -> bool:
    left = _count_left(fleet, gangs, dict(state))
    if sum(left[name] == most for name, most in fleet.items()) < free_nodes:
        return False
    return wants is None or next(_list_places(left, wants.sizes), None) is not None


def _count_left(
    fleet: Mapping[str, int],
    gangs: Mapping[str, SizedGang],
    places: Mapping[str, tuple[str, ...]],
) -> dict[str, int]:
    left = dict(fleet)
    for name, nodes in places.items():
        for node, size in zip(nodes, gangs[name].sizes, strict=True):
            left[node] -= size
    return left


def _list_places(
    left: Mapping[str, int], sizes: tuple[int, ...]
) -> Iterator[tuple[str, ...]]:
    if not sizes:
        yield ()
        return
    for node, devices in left.items():
        if devices >= sizes[0]:
            after = {**left, node: devices - sizes[0]}
            for others in _list_places(after, sizes[1:]):
                yield (node, *others)


def check_moves(
    fleet: Mapping[str, frozenset[str]],
    places: Mapping[str, Sequence[Place]],
    steps: Sequence[tuple[str, Sequence[Place]]],
    freed: Sequence[str],
) -> list[str]:
    """Carry out moves one after the other; returns what is wrong with them.

    `fleet`: the devices of each node.
    """
    now, wrong = {name: list(of) for name, of in places.items()}, list[str]()
    for name, pods in steps:
        before = now.pop(name)
        taken = {
            (node, device)
            for of in now.values()
            for node, devices in of
            for device in devices
        }
        if sorted(len(d) for _, d in before) != sorted(len(d) for _, d in pods):
            wrong.append(f"{name}: not what it had")
        for node, devices in pods:
            own = {(node, device) for device in devices}
            if not devices <= fleet[node]:
                wrong.append(f"{name}: {node} has no such devices")
            if own & taken:
                wrong.append(f"{name}: somebody has them on {node}")
            taken |= own
        now[name] = list(pods)
    if len({name for name, _ in steps}) < len(steps):
        wrong.append("somebody moves twice")
    for name, of in now.items():
        wrong += [f"{name}: is on {node}" for node, _ in of if node in freed]
    return wrong
