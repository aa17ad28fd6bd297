"""Checks that the domains of a key have room for the pods of a topology rule.

By counting only: each member alone, every domain as if nobody else took of it. What
passes may still not fit; what falls short cannot. The words name the domains that come
nearest. Knows no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from contracts.counts import counted
from contracts.even_parts import find_even_parts
from contracts.gang_rules import GangTopology
from solver.problem.attributes import Element

MOST_NAMED = 3
"""Domains that a message names."""
Rooms = Mapping[str, Mapping[str, int]]
"""By member, by domain: pods that there is room for."""


class Shortfall(Struct, frozen=True, kw_only=True):
    """The room that the domains of one topology have, where it is too little."""

    message: str
    asked: int
    """Pods, or groups of them."""
    room: int
    """Of these, for so many at most."""
    domains: int


def find_topology_shortfall(
    topology: GangTopology, counts: Mapping[str, int], rooms: Rooms
) -> Shortfall | None:
    """Find the room that a topology lacks on the nodes of the input; None: none.

    `counts`: pods by member. Only members that the topology names are looked at.
    """
    named = [member for member in counts if topology.is_about(member)]
    if topology.is_even:
        found = (
            _find_even_shortfall(topology, member, counts[member], rooms)
            for member in named
        )
        return next(filter(None, found), None)
    if topology.group_size is not None:
        for member in named:
            asked, room = counts[member], rooms.get(member, {})
            shortfall = _find_group_shortfall(topology, member, asked, room)
            if shortfall is not None:
                return shortfall
        return None
    if topology.max_per_domain is not None:
        return _find_spread_shortfall(topology, named, counts, rooms)
    return _find_plain_shortfall(topology, named, counts, rooms)


def _find_plain_shortfall(
    topology: GangTopology,
    named: Sequence[str],
    counts: Mapping[str, int],
    rooms: Rooms,
) -> Shortfall | None:
    """Look for one domain that has room for all."""
    asked = sum(counts[member] for member in named)
    room = _add_up_members(named, counts, rooms)
    best = max(room.values(), default=0)
    if best >= asked:
        return None
    return Shortfall(
        message=f"all {counted(asked, 'pod')} in one domain of {topology.key}: "
        f"{_describe_rooms(room, asked)}",
        asked=asked,
        room=best,
        domains=len(room),
    )


def _find_spread_shortfall(
    topology: GangTopology,
    named: Sequence[str],
    counts: Mapping[str, int],
    rooms: Rooms,
) -> Shortfall | None:
    """Add up what all domains may take."""
    asked = sum(counts[member] for member in named)
    most = topology.max_per_domain or asked
    room = _add_up_members(named, counts, rooms)
    total = sum(min(pods, most) for pods in room.values())
    if total >= asked:
        return None
    return Shortfall(
        message=f"at most {most} of {counted(asked, 'pod')} in one domain of "
        f"{topology.key}: the {len(room)} with room can take {total} of {asked}",
        asked=asked,
        room=total,
        domains=len(room),
    )


def _find_group_shortfall(
    topology: GangTopology, member: str, asked: int, room: Mapping[str, int]
) -> Shortfall | None:
    """Count the whole groups that domains have room for."""
    size = topology.size or asked
    most = topology.max_per_domain
    capped = {d: pods if most is None else min(pods, most) for d, pods in room.items()}
    groups, rest = divmod(asked, size)
    if not groups:
        groups, size, rest = 1, rest, 0
    found = sum(pods // size for pods in capped.values())
    if found >= groups and sum(capped.values()) >= asked:
        return None
    groups += bool(rest)
    found = min(found, groups - bool(rest))
    return Shortfall(
        message=f"groups of {counted(size, 'pod')} of {member}, each in one domain of "
        f"{topology.key}: room for {found} of {counted(groups, 'group')}; "
        f"{_describe_rooms(capped, size)}",
        asked=groups,
        room=found,
        domains=len(room),
    )


def _find_even_shortfall(
    topology: GangTopology, member: str, asked: int, rooms: Rooms
) -> Shortfall | None:
    """Look for a division of which each part has a domain of its own."""
    room = rooms.get(member, {})
    nearest = find_even_parts(asked, room.values(), topology.max_per_domain)
    if nearest.found >= nearest.parts:
        return None
    return Shortfall(
        message=f"{member}: {nearest.describe(topology.key)}; "
        f"{_describe_rooms(room, asked)}",
        asked=nearest.parts,
        room=nearest.found,
        domains=len(room),
    )


def _add_up_members(
    named: Sequence[str], counts: Mapping[str, int], rooms: Rooms
) -> dict[str, int]:
    """Add up members by domain, each at most by its count."""
    united: dict[str, int] = {}
    for member in named:
        for domain, pods in rooms.get(member, {}).items():
            united[domain] = united.get(domain, 0) + min(pods, counts[member])
    return {domain: pods for domain, pods in united.items() if pods}


def _describe_rooms(room: Mapping[str, int], asked: int) -> str:
    """Name the domains with most room: what the nearest have, of how many."""
    nearest = sorted(room.items(), key=lambda pair: (-pair[1], pair[0]))
    if not nearest:
        return "none has room for a pod"
    (first, most), *others = nearest
    of_all = f" of {asked}" if most < asked else ""
    parts = [f"{first or '(empty)'} has room for {most}{of_all}"]
    parts += [
        f"{name or '(empty)'} for {pods}" for name, pods in others[: MOST_NAMED - 1]
    ]
    hidden = len(nearest) - MOST_NAMED
    more = f", and {hidden} more for as many or fewer" if hidden > 0 else ""
    return ", ".join(parts) + more


def rooms_by_value(
    requests: Sequence[tuple[int, Sequence[frozenset[Element]]]],
) -> dict[Element, int]:
    """Count the pods of one node by the value that all their devices may have.

    `requests`: devices for each pod, and the values of each device that would do. One
    without any has no say in the domain of its pod.
    """
    values = frozenset[Element]().union(*(v for _, found in requests for v in found))
    return {
        value: min(
            sum(value in of_device or not of_device for of_device in found) // count
            for count, found in requests
        )
        for value in values
    }
