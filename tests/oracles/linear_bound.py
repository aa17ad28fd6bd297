"""What no answer to a batch can be worth, by linear programs over sums.

Gangs may be in by parts. Each needs some of what the whole cluster has together: CPU,
memory and pods of nodes, devices of the sets that its requests may choose from, what is
left of shared capacity. Topology, constraints and other pods count only as far as a
single pod has a place. Plain Python; devices must be local to nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from math import floor

from msgspec import Struct

from solver.problem.gangs import GangPart, MemberPart, RequestPart
from solver.problem.problem import Problem
from tests.oracles.brute_ways import ways_on
from tests.oracles.brute_world import Place, Thing, World
from tests.oracles.simplex import bound_above

Spot = tuple[int, int]
"""A device: number of its place, and of the thing on it."""
Counter = tuple[int, tuple[object, str, str]]
"""A counter of a place."""


class Need(Struct, frozen=True, eq=False):
    """Devices that a pod needs: so much at least, from these."""

    spots: frozenset[Spot]
    amount: Fraction
    """Of whole devices; a part of a card is a part of one."""
    capacity: tuple[tuple[str, int], ...]
    """The least that it consumes of each capacity, where all of them are shared."""


class LinearBound:
    """Bounds of one batch."""

    def __init__(self, problem: Problem) -> None:
        self.world = World(problem)
        assert all(pool.node for pool in self.world.pools)
        self._gangs = [gang for gang in problem.gangs if not gang.refused]
        self._totals: dict[Counter, int] = {
            (index, counter): amount
            for index, place in enumerate(self.world.places)
            for counter, amount in place.counters.items()
        }
        """What is left of each counter."""
        self._needs: dict[int, list[tuple[int, Need]]] = {}
        """By gang: so many pods have such a need."""
        self._hopeless: set[int] = set()
        """Gangs with a pod that has no place even alone."""
        for number, gang in enumerate(self._gangs):
            self._needs[number] = list(self._list_needs(number, gang))

    def of_priority(self, priority: int) -> int:
        """Bound what the gangs of a priority are worth, as if there were no others."""
        return self._bound({n for n, g in self._numbered() if g.priority == priority})

    def of_all(self) -> int:
        """Bound what all gangs are worth together."""
        return self._bound({n for n, _ in self._numbered()})

    def _numbered(self) -> Iterator[tuple[int, GangPart]]:
        yield from enumerate(self._gangs)

    def _bound(self, chosen: set[int]) -> int:
        gangs = sorted(chosen - self._hopeless)
        rows = [
            ([float(each.get(number, 0)) for number in gangs], float(there))
            for each, there in self._rows()
        ]
        return floor(bound_above([self._gangs[n].weight for n in gangs], rows))

    # --- what is needed ------------------------------------------------------------

    def _list_needs(self, number: int, gang: GangPart) -> Iterator[tuple[int, Need]]:
        for member in gang.members:
            least = _least(member)
            if not least:
                continue
            places = [
                index
                for index, place in enumerate(self.world.places)
                if self._has_place(member, place)
            ]
            if not places:
                self._hopeless.add(number)
            for claim in member.claims:
                for request in claim.requests:
                    need = self._need(request, places)
                    if need is not None:
                        yield least, need

    def _has_place(self, member: MemberPart, place: Place) -> bool:
        free = place.node.free
        if not self.world.admits(place.node, member):
            return False
        if free is not None and any(
            amount > free.get(name, 0) for name, amount in member.resources.items()
        ):
            return False
        return any(
            mine is not None for _, mine, _ in ways_on(self.world, member, place)
        )

    def _need(self, request: RequestPart, places: list[int]) -> Need | None:
        """Find the least that a request takes; None: it may take nothing of anybody."""
        spots: set[Spot] = set()
        amounts = []
        costs: list[dict[str, int]] = []
        for asked in request.alternatives:
            if asked.admin_access:
                return None
            mine = [
                (index, number)
                for index in places
                for number, thing in enumerate(self.world.places[index].things)
                if self.world.meant(asked, thing)
                and self.world.open(asked, thing, self.world.places[index])
            ]
            count = 1 if asked.all_devices else asked.count
            amounts.append(count * min(map(self._size, mine), default=Fraction(0)))
            costs += [self.world.cost(asked, self._thing(spot)) or {} for spot in mine]
            spots.update(mine)
        shared = [self.world.shareable(self._thing(spot)) for spot in spots]
        if not spots or (any(shared) and not all(shared)):
            return None
        names = frozenset.intersection(*map(frozenset, costs)) if all(shared) else ()
        least = tuple((name, min(c[name] for c in costs)) for name in sorted(names))
        return Need(frozenset(spots), min(amounts), least)

    def _thing(self, spot: Spot) -> Thing:
        return self.world.places[spot[0]].things[spot[1]]

    def _counter(self, spot: Spot) -> tuple[Counter, int] | None:
        """Find the first counter that a device draws from, and how much."""
        thing = self._thing(spot)
        for drawn in thing.device.consumes_counters:
            for name, counter in sorted(drawn.counters.items()):
                pool = (thing.name.driver, thing.name.pool)
                return (spot[0], (pool, drawn.counter_set, name)), counter.value.nano
        return None

    def _size(self, spot: Spot) -> Fraction:
        """Say what part of a card a device is; whole devices are 1, shared ones 0."""
        if self.world.shareable(self._thing(spot)):
            return Fraction(0)
        found = self._counter(spot)
        if found is None:
            return Fraction(1)
        (place, counter), drawn = found
        there = self._totals[place, counter]
        return Fraction(drawn, there) if there else Fraction(1)

    # --- what there is -------------------------------------------------------------

    def _rows(self) -> Iterator[tuple[dict[int, Fraction], Fraction]]:
        """Go through what each gang needs of something, and how much there is of it."""
        yield from self._node_rows()
        needs = [need for listed in self._needs.values() for _, need in listed]
        sets = dict.fromkeys(need.spots for need in needs)
        for spots in (*sets, frozenset().union(*sets)):
            yield self._device_row(spots)
            for name in {name for need in needs for name, _ in need.capacity}:
                yield self._capacity_row(spots, name)

    def _node_rows(self) -> Iterator[tuple[dict[int, Fraction], Fraction]]:
        places = [place.node.free for place in self.world.places]
        names = {n for g in self._gangs for m in g.members for n in m.resources}
        for name in sorted(names | {"pods"}):
            known = [free for free in places if free is not None]
            if len(known) < len(places) or (
                name == "pods" and not all(name in free for free in known)
            ):
                continue
            used = {
                number: Fraction(
                    sum(
                        _least(m) * {"pods": 1, **m.resources}.get(name, 0)
                        for m in gang.members
                    )
                )
                for number, gang in self._numbered()
            }
            yield used, Fraction(sum(max(0, free.get(name, 0)) for free in known))

    def _device_row(
        self, spots: frozenset[Spot]
    ) -> tuple[dict[int, Fraction], Fraction]:
        there = Fraction(0)
        cards: set[Counter] = set()
        for spot in spots:
            found = self._counter(spot)
            if self.world.shareable(self._thing(spot)):
                continue
            if found is None:
                there += 1
            else:
                cards.add(found[0])
        return self._used(spots), there + len(cards)

    def _used(self, spots: frozenset[Spot]) -> dict[int, Fraction]:
        used: defaultdict[int, Fraction] = defaultdict(Fraction)
        for number, listed in self._needs.items():
            for pods, need in listed:
                if need.spots <= spots:
                    used[number] += pods * need.amount
        return used

    def _capacity_row(
        self, spots: frozenset[Spot], name: str
    ) -> tuple[dict[int, Fraction], Fraction]:
        there = 0
        for spot in spots:
            thing = self._thing(spot)
            if self.world.shareable(thing) and name in thing.device.capacity:
                held = (self.world.shares(thing.name) or {}).get(name, 0)
                there += max(0, thing.device.capacity[name].value.nano - held)
        used: defaultdict[int, Fraction] = defaultdict(Fraction)
        for number, listed in self._needs.items():
            for pods, need in listed:
                if need.spots <= spots:
                    used[number] += pods * dict(need.capacity).get(name, 0)
        return used, Fraction(there)


def _least(member: MemberPart) -> int:
    return member.count if member.min_count is None else member.min_count
