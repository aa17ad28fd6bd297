"""What plain greedy reaches on a batch of any size: no engine may be worth less.

Gangs come one after the other in several orders, each whole or not at all, and pods go
to the first node, or to the one with least free, where every rule still holds. Knows
the rules from the oracles of brute force alone; devices must be local to nodes. Pods
beyond what gangs need are not placed, so only the weight that is in counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from tests.oracles.brute_between import Between, Somebody, may_meet
from tests.oracles.brute_gangs import Member, allowed, is_plain
from tests.oracles.brute_sums import Cost, sums_hold
from tests.oracles.brute_ways import Way, ways_on
from tests.oracles.brute_world import Place, Thing, World

WAYS = 200
"""Ways to have devices of a node that are tried for a pod."""
Weights = tuple[int, ...]
"""What is in, by priority, highest first."""


def order_by_age(gang: GangPart) -> tuple[float, ...]:
    """Keep the order of the batch."""
    return (-gang.priority,)


def order_by_weight(gang: GangPart) -> tuple[float, ...]:
    """Begin with what is worth most."""
    return (-gang.priority, -gang.weight)


def order_by_density(gang: GangPart) -> tuple[float, ...]:
    """Begin with what is worth most for each device."""
    return (-gang.priority, -gang.weight / max(1, _devices_of(gang)))


def order_by_tightness(gang: GangPart) -> tuple[float, ...]:
    """Begin with the largest pods, and of these with most of them."""
    largest = max((member.asked for member in gang.members), default=0)
    return (-gang.priority, -largest, -_devices_of(gang))


ORDERS: tuple[Callable[[GangPart], tuple[float, ...]], ...] = (
    order_by_age,
    order_by_weight,
    order_by_density,
    order_by_tightness,
)


class GreedyFloor:
    """The best of all orders, first fit and best fit each."""

    def __init__(self, problem: Problem) -> None:
        self.world = World(problem)
        assert all(pool.node for pool in self.world.pools)
        self._between = Between(problem, self.world)
        self._gangs = [gang for gang in problem.gangs if not gang.refused]
        assert not any(gang.standing for gang in self._gangs)
        self._priorities = sorted({g.priority for g in self._gangs}, reverse=True)
        self._ways: dict[tuple[int, int], _Ways] = {}

    def best(self) -> Weights:
        """Find the best of all."""
        return max(
            self._run(sorted(self._gangs, key=order), best_fit=best_fit)
            for order in ORDERS
            for best_fit in (False, True)
        )

    def _run(self, gangs: Sequence[GangPart], *, best_fit: bool) -> Weights:
        filling = _Filling(self.world, self._between, self.ways, best_fit=best_fit)
        weights = dict.fromkeys(self._priorities, 0)
        for gang in gangs:
            if filling.place(gang):
                weights[gang.priority] += gang.weight
        return tuple(weights.values())

    def ways(self, member: MemberPart, number: int) -> Iterator[Way]:
        """Go through the ways of a pod on a place that break no rule by themselves."""
        key = (id(member), number)
        if key not in self._ways:
            place = self.world.places[number]
            self._ways[key] = _Ways(ways_on(self.world, member, place))
        return iter(self._ways[key])


class _Ways:
    """Ways that are found once, as far as anybody asked for them."""

    def __init__(self, source: Iterator[Way]) -> None:
        self._source = (w for w in islice(source, WAYS) if w[1] is not None)
        self._known: list[Way] = []

    def __iter__(self) -> Iterator[Way]:
        yield from self._known
        for way in self._source:
            self._known.append(way)
            yield way


class _Use(Struct, frozen=True, eq=False):
    """A pod where it was placed."""

    place: int
    things: tuple[tuple[Thing, Cost], ...]
    """What others cannot have any more."""
    needs: dict[str, int]
    """Of the node itself."""
    somebody: Somebody | None


class _Filling:
    """A cluster while one order of gangs is placed on it."""

    def __init__(
        self,
        world: World,
        between: Between,
        ways: Callable[[MemberPart, int], Iterator[Way]],
        *,
        best_fit: bool,
    ) -> None:
        self._world, self._between, self._ways = world, between, ways
        self._best_fit = best_fit
        self._sorts: dict[int, int] = {}
        """What pods are to others, by the identity of their member."""
        self._uses: list[_Use] = []
        self._here: list[list[tuple[Thing, Cost]]] = [[] for _ in world.places]
        self._needs: list[dict[str, int]] = [{} for _ in world.places]

    def place(self, gang: GangPart) -> bool:
        """Place a gang, in one domain after the other where it must be in one."""
        for region in self._regions(gang):
            mark, pods = len(self._uses), list[Member]()
            if self._place_in(gang, region, pods) and self._all_hold():
                return True
            self._undo(mark)
        return False

    def _place_in(
        self, gang: GangPart, region: frozenset[int], pods: list[Member]
    ) -> bool:
        for member in gang.members:
            least = member.count if member.min_count is None else member.min_count
            size = _group_size(gang, member) or least
            for first in range(0, least, max(1, size)):
                count = min(size, least - first)
                if not self._place_group(gang, member, first, count, region, pods):
                    return False
        return True

    def _place_group(  # noqa: PLR0917  # who, which of them, and where
        self,
        gang: GangPart,
        member: MemberPart,
        first: int,
        count: int,
        region: frozenset[int],
        pods: list[Member],
    ) -> bool:
        """Place pods together; those of a group in one domain after the other."""
        regions = [region]
        if _group_size(gang, member) is not None:
            (key,) = (r.key for r in gang.topology if r.group_size is not None)
            regions = [region & each for each in self._domains(key)]
        for each in regions:
            mark, known = len(self._uses), len(pods)
            if all(
                self._place_pod(gang, member, first + number, each, pods)
                for number in range(count)
            ):
                return True
            self._undo(mark)
            del pods[known:]
        return False

    def _place_pod(
        self,
        gang: GangPart,
        member: MemberPart,
        index: int,
        region: frozenset[int],
        pods: list[Member],
    ) -> bool:
        places = sorted(region)
        if self._best_fit:
            places.sort(key=self._count_free)
        for number in places:
            place = self._world.places[number]
            if not self._world.admits(place.node, member):
                continue
            if not self._has_room(place, number, member):
                continue
            somebody = self._somebody(gang, member, number)
            if somebody is not None and not self._may_join(somebody):
                continue
            for _, mine, devices in self._ways(member, number):
                things = tuple(
                    (place.things[thing], cost)
                    for thing, cost, is_admin in mine or ()
                    if not is_admin
                )
                if not self._fits(number, things):
                    continue
                pod = Member(member.name, index, place.node, 1, devices)
                if not is_plain(gang) and not allowed(gang, (*pods, pod), self._world):
                    continue
                needs = {"pods": 1, **member.resources}
                self._take(_Use(number, things, needs, somebody))
                pods.append(pod)
                return True
        return False

    # --- what is left --------------------------------------------------------------

    def _count_free(self, number: int) -> int:
        return len(self._world.places[number].things) - len(self._here[number])

    def _has_room(self, place: Place, number: int, member: MemberPart) -> bool:
        free, used = place.node.free, self._needs[number]
        if free is None:
            return True
        return all(
            (name == "pods" and name not in free)
            or used.get(name, 0) + amount <= free.get(name, 0)
            for name, amount in {"pods": 1, **member.resources}.items()
        )

    def _fits(self, number: int, things: tuple[tuple[Thing, Cost], ...]) -> bool:
        here = self._here[number]
        taken = {thing.name for thing, _ in here}
        if any(t.name in taken and not self._world.shareable(t) for t, _ in things):
            return False
        return sums_hold(self._world, self._world.places[number], [*here, *things])

    def _take(self, use: _Use) -> None:
        self._uses.append(use)
        self._here[use.place].extend(use.things)
        needs = self._needs[use.place]
        for name, amount in use.needs.items():
            needs[name] = needs.get(name, 0) + amount

    def _undo(self, mark: int) -> None:
        while len(self._uses) > mark:
            use = self._uses.pop()
            if use.things:
                del self._here[use.place][-len(use.things) :]
            for name, amount in use.needs.items():
                self._needs[use.place][name] -= amount

    # --- other pods ----------------------------------------------------------------

    def _somebody(
        self, gang: GangPart, member: MemberPart, number: int
    ) -> Somebody | None:
        if self._between.is_quiet:
            return None
        if id(member) not in self._sorts:
            self._sorts[id(member)] = self._between.sort_of(gang, member)
        return self._between.pod(number, self._sorts[id(member)])

    def _may_join(self, pod: Somebody) -> bool:
        everybody = self._everybody()
        if not pod.rules.apart and not pod.rules.ports:
            everybody = (p for p in everybody if p.rules.apart or p.rules.ports)
        return all(may_meet(pod, other) for other in everybody)

    def _everybody(self) -> Iterator[Somebody]:
        yield from self._between.running
        for use in self._uses:
            if use.somebody is not None:
                yield use.somebody

    def _all_hold(self) -> bool:
        return self._between.is_quiet or self._between.all_hold([*self._everybody()])

    # --- domains -------------------------------------------------------------------

    def _regions(self, gang: GangPart) -> list[frozenset[int]]:
        """List where all pods of a gang may be: the domains that it must share."""
        for rule in gang.topology:
            is_whole = rule.group_size is None and rule.max_per_domain is None
            if rule.mode == "Required" and is_whole and ":" not in rule.key:
                return self._domains(rule.key)
        return [frozenset(range(len(self._world.places)))]

    def _domains(self, key: str) -> list[frozenset[int]]:
        found: dict[str, set[int]] = {}
        for number, place in enumerate(self._world.places):
            if key in place.node.labels:
                found.setdefault(place.node.labels[key], set()).add(number)
        domains = [frozenset(numbers) for numbers in found.values()]
        if self._best_fit:
            domains.sort(key=lambda numbers: sum(map(self._count_free, numbers)))
        return domains


def _group_size(gang: GangPart, member: MemberPart) -> int | None:
    for rule in gang.topology:
        is_about = not rule.members or member.name in rule.members
        if rule.mode == "Required" and rule.size is not None and is_about:
            return rule.size
    return None


def _devices_of(gang: GangPart) -> int:
    return sum(
        member.asked * (member.count if member.min_count is None else member.min_count)
        for member in gang.members
    )
