"""The best answer to a tiny Problem, by trying everything: the models' oracle.

Plain Python over the recorded facts; shares no code with candidates, kinds, models or
judge. Exponential on purpose; keep problems to a few nodes with a few devices each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from msgspec import Struct

from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.oracles.brute_between import Between
from tests.oracles.brute_gangs import (
    Had,
    Member,
    allowed,
    divided,
    is_plain,
    list_standing,
    may_grow,
    preferences_cost,
    worth_of,
)
from tests.oracles.brute_sharing import (
    Merged,
    Sharing,
    claims_of_many,
    without_claims,
)
from tests.oracles.brute_slack import Leftover
from tests.oracles.brute_sums import Cost, sums_hold
from tests.oracles.brute_ways import ways_on
from tests.oracles.brute_world import Place, Thing, World

Value = tuple[int, ...]
"""Weight that is in, by priority, highest first; likewise what extra pods are worth,
where any may be; then, negative, the ranks, the value of what is left over that is
lost, what preferences cost, and the nodes touched."""
POD = -1
"""Stands for a pod itself among the things that are taken."""
WAYS = 30_000
"""Ways to place a pod that are tried for one Problem."""


class TooManyWaysError(Exception):
    """The Problem is not tiny."""


class Taken(Struct, frozen=True, order=True):
    """One device that a pod has, or what it needs of the node itself."""

    place: int
    thing: int
    cost: Cost
    sort: int = -1
    """Of a pod itself: what it is to others."""


_Ways = dict[tuple[tuple[Taken, ...], tuple[Member, ...], int], int]
"""(what is taken, pods, what extra ones are worth) -> least ranks."""


_Way = tuple[int, tuple[Taken, ...] | None, tuple[Had, ...]]
"""Ranks, what is taken, and devices; None: they do not go together."""


def _pods_of(state: tuple[Taken, ...]) -> list[tuple[int, int]]:
    """List the pods that are placed: place and sort of each."""
    return [(item.place, item.sort) for item in state if item.thing == POD]


class Brute:
    """Everything there is to know of one tiny Problem."""

    def __init__(self, problem: Problem) -> None:
        self.world = World(problem)
        self.between = Between(problem, self.world)
        self._ways = 0
        self._merged = Merged()
        self._known: dict[tuple[int, int], tuple[MemberPart, list[_Way]]] = {}
        """Ways by id of a member, which is kept with them, and place."""
        # Whose pods break a rule by themselves gets no others.
        self.gangs = [
            gang
            for gang in problem.gangs
            if not gang.refused
            and allowed(gang, (), self.world, list_standing(gang, self.world))
        ]
        self.priorities = sorted({g.priority for g in self.gangs}, reverse=True)
        elastic = (g for g in self.gangs if any(map(may_grow, g.members)))
        self.growing = sorted({g.priority for g in elastic}, reverse=True)

    def tiers(self) -> list[Tier]:
        """Name the tier of each number of the value."""
        first = [Tier.GANGS] * len(self.priorities) + [Tier.EXTRA] * len(self.growing)
        return [*first, Tier.ALTERNATIVES, Tier.LEFTOVER, Tier.TOPOLOGY, Tier.NODES]

    def value(self) -> Value:
        """Find the best value, one tier after the other.

        Raises:
            TooManyWaysError: trying everything would take too long.
        """
        width = len(self.priorities) + len(self.growing) + 1
        leftover = Leftover(self.world)

        def later(state: tuple[Taken, ...]) -> Value:
            """Weigh what a finished answer leaves; preferences are added by gang."""
            by_place: dict[int, list[tuple[int, Cost]]] = {}
            for item in state:
                by_place.setdefault(item.place, []).append((item.thing, item.cost))
            lost = sum(leftover.lost(n, tuple(m)) for n, m in by_place.items())
            return (-lost, 0, -len(by_place))

        @cache
        def best(index: int, state: tuple[Taken, ...]) -> Value | None:
            if index == len(self.gangs):
                if not self.between.hold(_pods_of(state)):
                    return None
                return (0,) * width + later(state)
            gang = self.gangs[index]
            found = best(index + 1, state)
            for more, (extra, ranks, cost) in self._gang(gang, state).items():
                after = best(index + 1, more)
                if after is None:
                    continue
                rest = list(after)
                rest[self.priorities.index(gang.priority)] += gang.weight
                if extra:
                    growing = self.growing.index(gang.priority)
                    rest[len(self.priorities) + growing] += extra
                rest[width - 1] += ranks
                rest[-2] += cost
                found = tuple(rest) if found is None else max(found, tuple(rest))
            return found

        # With no gang in every rule holds.
        return best(0, ()) or ()

    def _gang(
        self, gang: GangPart, state: tuple[Taken, ...]
    ) -> dict[tuple[Taken, ...], tuple[int, int, int]]:
        """Place it in every way: what is taken, and what that is worth but weight."""
        states: _Ways = {(state, (), 0): 0}
        for member in gang.members:
            least = member.count if member.min_count is None else member.min_count
            enough = states if not least else {}
            for index in range(member.count):
                worth = worth_of(member) if index >= least else 0
                states = self._with_pod(gang, (member, index), states, worth)
                if index + 1 >= least:
                    enough = {**enough, **states}
            states = enough
        shared = claims_of_many(gang)
        standing = list_standing(gang, self.world)
        for claim in shared:
            states = Sharing(self.world, gang, claim).give(states, self._on_claim)
        best: dict[tuple[Taken, ...], tuple[int, int, int]] = {}
        for (more, pods, extra), ranks in states.items():
            if shared and not allowed(gang, pods, self.world):
                continue
            if not divided(gang, pods, self.world):
                continue
            cost = preferences_cost(gang, (*standing, *pods), self.world)
            cost -= preferences_cost(gang, standing, self.world)
            value = (extra, -ranks, -cost)
            best[more] = max(value, best.get(more, value))
        return best

    def _with_pod(
        self, gang: GangPart, pod: tuple[MemberPart, int], states: _Ways, worth: int
    ) -> _Ways:
        """Place one more pod in every way."""
        member, number = pod
        found: _Ways = {}
        standing = list_standing(gang, self.world)
        sort, shared = self.between.sort_of(gang, member), claims_of_many(gang)
        own = without_claims(member, shared)
        for (known, pods, extra), ranks in states.items():
            for more, rank, (place, devices) in self._pod(own, sort, known):
                together = pods
                # Who is where matters to rules of the gang, and to what pods share.
                if not is_plain(gang):
                    node, stands_for = place.node, member.resources.get("pods", 1)
                    index = member.first + number
                    mine = Member(member.name, index, node, stands_for, devices)
                    together = (*pods, mine)
                    if not (shared or allowed(gang, together, self.world, standing)):
                        continue
                elif shared:
                    together = self._merged.add(pods, member.name, place.node)
                key = (more, together, extra + worth)
                found[key] = min(ranks + rank, found.get(key, 1 << 30))
        return found

    def _pod(
        self, member: MemberPart, sort: int, state: tuple[Taken, ...]
    ) -> Iterator[tuple[tuple[Taken, ...], int, tuple[Place, tuple[Had, ...]]]]:
        for number, place in enumerate(self.world.places):
            if not self.world.admits(place.node, member):
                continue
            yield from self._on((member, sort), number, place, state)

    def _on_claim(
        self, member: MemberPart, number: int, place: Place, state: tuple[Taken, ...]
    ) -> Iterator[tuple[tuple[Taken, ...], int, tuple[Had, ...]]]:
        """Allocate a claim by itself on a node in every way."""
        for more, rank, (_, had) in self._on((member, None), number, place, state):
            yield more, rank, had

    def _on(
        self,
        pod: tuple[MemberPart, int | None],
        number: int,
        place: Place,
        state: tuple[Taken, ...],
    ) -> Iterator[tuple[tuple[Taken, ...], int, tuple[Place, tuple[Had, ...]]]]:
        member, sort = pod
        for rank, mine, devices in self._list_ways(member, number, place):
            self._ways += 1
            if self._ways > WAYS:
                raise TooManyWaysError
            if mine is None:
                continue
            kept = list(mine)
            if sort is not None:  # a claim is no pod
                needs = {"pods": 1, **member.resources}
                kept.append(Taken(number, POD, tuple(sorted(needs.items())), sort))
            more = tuple(sorted([*state, *kept]))
            if self._all_fit(more) and self.between.may_hold(_pods_of(more)):
                yield more, rank, (place, devices)

    def _list_ways(self, member: MemberPart, number: int, place: Place) -> list[_Way]:
        """List the ways to place a pod alone; who else is there changes nothing."""
        key = (id(member), number)
        if key not in self._known:
            ways = [
                (
                    sum(ranks),
                    self._take(number, mine)
                    if mine is not None and self._fits(place, [], mine)
                    else None,
                    devices,
                )
                for ranks, mine, devices in islice(
                    ways_on(self.world, member, place), WAYS + 1
                )
            ]
            self._known[key] = (member, ways)
        return self._known[key][1]

    def _take(
        self, number: int, mine: Iterable[tuple[int, Cost, bool]]
    ) -> tuple[Taken, ...]:
        return tuple(
            Taken(number, thing, cost) for thing, cost, admin in mine if not admin
        )

    # --- what everybody has together -----------------------------------------------

    def _all_fit(self, state: tuple[Taken, ...]) -> bool:
        """Check all that is given out, seen from every node that has some of it."""
        given: dict[object, list[tuple[Thing, Cost]]] = {}
        if not self._nodes_suffice(state):
            return False
        for item in state:
            if item.thing == POD:
                continue
            thing = self.world.places[item.place].things[item.thing]
            given.setdefault(thing.name, []).append((thing, item.cost))
        for uses in given.values():
            if len(uses) > 1 and not self.world.shareable(uses[0][0]):
                return False
        everything = [use for uses in given.values() for use in uses]
        return all(
            sums_hold(self.world, self.world.places[number], everything)
            for number in {item.place for item in state}
        )

    def _nodes_suffice(self, state: tuple[Taken, ...]) -> bool:
        """Check that the pods on each node find enough of what it has left."""
        needs: dict[tuple[int, str], int] = {}
        for item in state:
            for name, amount in item.cost if item.thing == POD else ():
                needs[item.place, name] = needs.get((item.place, name), 0) + amount
        for (number, name), amount in needs.items():
            free = self.world.places[number].node.free
            if free is None:
                continue
            unlimited = name == "pods" and name not in free
            if not unlimited and amount > free.get(name, 0):
                return False
        return True

    def _fits(
        self,
        place: Place,
        others: list[tuple[Thing, Cost]],
        mine: Iterable[tuple[int, Cost, bool]],
    ) -> bool:
        own = [
            (place.things[device], cost) for device, cost, admin in mine if not admin
        ]
        return sums_hold(self.world, place, [*others, *own])
