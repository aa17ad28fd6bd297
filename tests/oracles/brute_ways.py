"""All ways in which a pod may have devices of one node, nobody else considered.

Plain Python over the recorded facts; shares no code with candidates, kinds, models or
judge. Exponential on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

from solver.problem.gangs import ClaimPart, MemberPart, SubrequestPart
from tests.oracles.brute_gangs import Had, list_had
from tests.oracles.brute_sums import Cost
from tests.oracles.brute_world import Place, World

MAX = 32
"""Devices of a claim."""
Holding = tuple[int, Cost, bool]
"""A thing of the place by its number, what it costs, and whether it is for admin
access."""
Way = tuple[tuple[int, ...], list[Holding] | None, tuple[Had, ...]]
"""The ranks of what was chosen, what is had, and what for; None: it breaks a rule."""


def ways_on(world: World, member: MemberPart, place: Place) -> Iterator[Way]:
    """Go through every choice of alternatives and devices, first alternatives first."""
    requests = [r for claim in member.claims for r in claim.requests]
    for ranks in product(*(range(len(r.alternatives)) for r in requests)):
        asked = [r.alternatives[k] for r, k in zip(requests, ranks, strict=True)]
        options = [list(_options(world, item, place)) for item in asked]
        for chosen in product(*options):
            mine = _holds(world, member, list(zip(asked, chosen, strict=True)), place)
            had = () if mine is None else list_had(member, asked, chosen, place)
            yield ranks, mine, had


def _options(
    world: World, asked: SubrequestPart, place: Place
) -> Iterator[tuple[int, ...]]:
    meant = [i for i, t in enumerate(place.things) if world.meant(asked, t)]
    free = [i for i in meant if world.open(asked, place.things[i], place)]
    if not asked.all_devices:
        yield from combinations(free, asked.count)
        return
    fails = any(world.selected(asked, t) is None for t in place.things)
    if place.whole and not fails and meant and free == meant:
        yield tuple(free)


Chosen = tuple[SubrequestPart, tuple[int, ...]]
"""An alternative, and the things that it gets."""


def _holds(
    world: World, member: MemberPart, choice: list[Chosen], place: Place
) -> list[Holding] | None:
    """Check what holds inside the pod; None: something does not."""
    first, uses = 0, list[tuple[int, SubrequestPart, int]]()
    for number, claim in enumerate(member.claims):
        last = first + len(claim.requests)
        part = choice[first:last]
        if sum(len(devices) for _, devices in part) > MAX:
            return None
        if not _constraints_hold(world, claim, part, place):
            return None
        for item, devices in part:
            uses.extend((number, item, device) for device in devices)
        first = last
    for i, (owner, _, device) in enumerate(uses):
        for other, later, same in uses[i + 1 :]:
            if device != same or world.shareable(place.things[device]):
                continue
            if owner == other or not later.admin_access:
                return None
    return [
        (device, _sorted(world.cost(item, place.things[device])), item.admin_access)
        for _, item, device in uses
    ]


def _sorted(cost: dict[str, int] | None) -> Cost:
    return tuple(sorted((cost or {}).items()))


def _constraints_hold(
    world: World, claim: ClaimPart, part: Iterable[Chosen], place: Place
) -> bool:
    pairs = list(zip(claim.requests, part, strict=True))
    for constraint in claim.constraints:
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        values = []
        for request, (asked, devices) in pairs:
            names = {request.name, f"{request.name}/{asked.name}"}
            if not constraint.requests or names & set(constraint.requests):
                values += [world.values(asked, name, place.things[d]) for d in devices]
        if not all(values):
            return False
        if constraint.match_attribute is not None:
            if values and not frozenset.intersection(*values):
                return False
        elif sum(map(len, values)) > len(frozenset().union(*values)):
            return False
    return True
