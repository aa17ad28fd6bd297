"""What room on a node is worth, for trying everything: from facts, device by device.

Plain Python over the recorded facts; shares no code with kinds, models or judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from solver.problem.gangs import ClaimPart, MemberPart, RequestPart
from tests.oracles.brute_world import Place, World

MOST = 2**24
Cost = tuple[tuple[str, int], ...]
Mine = tuple[tuple[int, Cost], ...]
"""What the pods on a node have: (device or -1 for the node itself, amounts)."""


class Leftover:
    """The value of the room on each node of a tiny Problem."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.expected = world.problem.expected
        self.lost = cache(self._lost)

    def _lost(self, number: int, mine: Mine) -> int:
        """Say how much less the room on a node is worth without what pods have."""
        place = self._world.places[number]
        return self._value(place, ()) - self._value(place, mine)

    def _value(self, place: Place, mine: Mine) -> int:
        total = 0
        for kind in self.expected:
            room = kind.size * self._room(place, kind.member, mine)
            if kind.size < 1000:
                room += 4 * min(room, 1000)
            total += kind.weight * room
        return total

    def _room(self, place: Place, pod: MemberPart, mine: Mine) -> int:
        if not self._world.admits(place.node, pod):
            return 0
        bounds = []
        free = place.node.free
        for name, need in {"pods": 1, **pod.resources}.items():
            if free is None or (name == "pods" and "pods" not in free):
                continue
            gone = sum(n for d, c in mine if d < 0 for k, n in c if k == name)
            bounds.append((max(0, free.get(name, 0)) - gone) // need)
        for claim in pod.claims:
            bounds += self._of_claim(place, claim, mine)
        return min(bounds) if bounds else 0

    def _of_claim(self, place: Place, claim: ClaimPart, mine: Mine) -> Iterable[int]:
        free = [
            r
            for r in claim.requests
            if r.alternatives[0].count
            and not r.alternatives[0].all_devices
            and not r.alternatives[0].admin_access
        ]
        for item in claim.constraints:
            meant = [
                r
                for r in free
                if not item.requests
                or {r.name, f"{r.name}/{r.alternatives[0].name}"} & set(item.requests)
            ]
            if item.match_attribute is None or not meant:
                continue
            values = {
                value
                for r in meant
                for t in place.things
                for value in self._world.values(
                    r.alternatives[0], item.match_attribute, t
                )
            }
            yield sum(
                min(
                    self._uses(place, r, mine, (item.match_attribute, value))
                    // r.alternatives[0].count
                    for r in meant
                )
                for value in values
            )
        for r in free:
            yield self._uses(place, r, mine, None) // r.alternatives[0].count

    def _uses(
        self,
        place: Place,
        request: RequestPart,
        mine: Mine,
        having: tuple[str, object] | None,
    ) -> int:
        world, asked, total = self._world, request.alternatives[0], 0
        for index, thing in enumerate(place.things):
            if not world.meant(asked, thing) or not world.open(asked, thing, place):
                continue
            if having and having[1] not in world.values(asked, having[0], thing):
                continue
            shares, multiple = world.shares(thing.name), world.shareable(thing)
            if thing.device.consumes_counters and not (multiple and shares is not None):
                pool = (thing.name.driver, thing.name.pool)
                if any(n < 0 for (p, _, _), n in place.counters.items() if p == pool):
                    continue
            cost = world.cost(asked, thing) or {}
            own = [c for d, c in mine if d == index]
            room = {
                k: thing.device.capacity[k].value.nano - (shares or {}).get(k, 0)
                for k in cost
            }
            on = world.features.consumable_capacity
            if shares is not None and on and any(room[k] < cost[k] for k in cost):
                continue
            if not multiple:
                total += not own
                continue
            for amounts in own:
                for k, n in amounts:
                    room[k] = room.get(k, 0) - n
            total += min([MOST, *(room[k] // n for k, n in cost.items() if n)])
        return total
