"""What room on a node is worth, for trying everything: from facts, device by device.

Plain Python over the recorded facts; shares no code with kinds, models or judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from contracts.ids import PoolID
from solver.problem.gangs import ClaimPart, MemberPart, RequestPart
from tests.oracles.brute_world import Place, Thing, World

MOST = 2**24
Drawn = tuple[tuple[str, str, int], ...]
"""(counter set, counter, 1e-9 units)."""
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
            if kind.size < 1000 and any(map(_takes_share, kind.member.claims)):
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
        used = {index for index, _ in mine if index >= 0}
        alike: dict[tuple[PoolID, Drawn], int] = {}
        for index, thing in enumerate(place.things):
            if not world.meant(asked, thing) or not world.open(asked, thing, place):
                continue
            if having and having[1] not in world.values(asked, having[0], thing):
                continue
            shares, multiple = world.shares(thing.name), world.shareable(thing)
            draws = not (multiple and (shares is not None or index in used))
            if draws and not self._counters_allow(place, index, used):
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
                drawn = _drawn(thing)
                if drawn and not own:
                    alike[thing.name.pool_id, drawn] = (
                        alike.get((thing.name.pool_id, drawn), 0) + 1
                    )
                else:
                    total += not own
                continue
            for amounts in own:
                for k, n in amounts:
                    room[k] = room.get(k, 0) - n
            total += min([MOST, *(room[k] // n for k, n in cost.items() if n)])
        # Of devices that draw the same only so many as that is left so often.
        for (pool, drawn), devices in alike.items():
            left = self._counters(place, used)
            key = (pool.driver, pool.pool)
            total += min([devices, *(left[key, s, c] // n for s, c, n in drawn if n)])
        return total

    def _counters(
        self, place: Place, used: set[int]
    ) -> dict[tuple[tuple[str, str], str, str], int]:
        left = dict(place.counters)
        for index in used:
            name = place.things[index].name
            if self._draws_anew(place, index):
                for counters, counter, amount in _drawn(place.things[index]):
                    left[(name.driver, name.pool), counters, counter] -= amount
        return left

    def _draws_anew(self, place: Place, index: int) -> bool:
        thing = place.things[index]
        shared = self._world.shares(thing.name) is not None
        return not (self._world.shareable(thing) and shared)

    def _counters_allow(self, place: Place, index: int, used: set[int]) -> bool:
        """Say whether a pod could have the device, too, as far as it draws."""
        if index in used:
            return True
        thing, left = place.things[index], self._counters(place, used)
        pool = (thing.name.driver, thing.name.pool)
        drawing = thing.device.consumes_counters
        if drawing and any(n < 0 for (p, _, _), n in left.items() if p == pool):
            return False
        if any(left[pool, s, c] < n for s, c, n in _drawn(thing)):
            return False
        if not self._world.features.compatibility_groups:
            return True
        for each in drawing:
            others = [
                *place.members.get((pool, each.counter_set), ()),
                *(
                    frozenset(other.compatibility_groups or ())
                    for number in used
                    if place.things[number].name.pool_id == thing.name.pool_id
                    and self._draws_anew(place, number)
                    for other in place.things[number].device.consumes_counters
                    if other.counter_set == each.counter_set
                ),
            ]
            all_of = [*others, frozenset(each.compatibility_groups or ())]
            if any(all_of) and not frozenset.intersection(*all_of):
                return False
        return True


def _takes_share(claim: ClaimPart) -> bool:
    firsts = [request.alternatives[0] for request in claim.requests]
    return any(
        first.capacity
        for first in firsts
        if first.count and not first.all_devices and not first.admin_access
    )


def _drawn(thing: Thing) -> Drawn:
    return tuple(
        sorted(
            (each.counter_set, name, counter.value.nano)
            for each in thing.device.consumes_counters
            for name, counter in each.counters.items()
        )
    )
