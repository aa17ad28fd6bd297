"""The best of several answers, each made by taking gangs in one after the other.

Urgent gangs come first; of equal priority by age, by weight, by weight for each device,
or the largest. What pods are placed on is the node with least left, or the first. It
knows every rule but for those in `find_unknown`; its work is bounded by steps, so that
an answer is a function of the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from solver.engines.construct.filling import Filling
from solver.engines.construct.naming import name_devices
from solver.engines.construct.ways import Style
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.gangs import GangPart

MOST_STEPS = 300_000
"""Nodes and devices that are tried over all orders."""
ADDED_STEPS = 100_000
"""Nodes and devices that are tried to add gangs to an answer."""
PASSES = 2
"""How often a gang is tried that may be near to others which come later."""
REPEAT_STEPS = 50_000
"""Steps kept to place gangs again in the best order."""
MOST_TURNS = 12
"""How often those that found no place go first, of one priority."""


def order_by_age(gang: GangPart) -> tuple[float, ...]:
    """Keep the order of the batch."""
    return (-gang.priority,)


def order_by_weight(gang: GangPart) -> tuple[float, ...]:
    """Begin with what is worth most."""
    return (-gang.priority, -gang.weight)


def order_by_density(gang: GangPart) -> tuple[float, ...]:
    """Begin with what is worth most for each device."""
    return (-gang.priority, -gang.weight / max(1, _count_devices(gang)))


def order_by_tightness(gang: GangPart) -> tuple[float, ...]:
    """Begin with the largest pods, and of these with most of them."""
    largest = max((member.asked for member in gang.members), default=0)
    return (-gang.priority, -largest, -_count_devices(gang))


ORDERS: tuple[Callable[[GangPart], tuple[float, ...]], ...] = (
    order_by_age,
    order_by_density,
    order_by_weight,
    order_by_tightness,
)


STYLES = (
    Style(),
    Style(best_fit=False),
    Style(takes_common=True),
    Style(best_fit=False, takes_common=True),
)
How = tuple[tuple[int, ...], Style]
"""In which order gangs come, and where their pods go."""


class Constructed(Struct, frozen=True):
    """An answer, by names."""

    placements: tuple[GangPlacement, ...] = ()
    value: tuple[int, ...] = ()
    """The weight that is in by priority, highest first; then what extra pods are
    worth."""


def construct(
    demand: Demand,
    kinds: Sequence[NodeKind],
    kept: Sequence[GangPlacement] = (),
) -> Constructed:
    """Place gangs level by level, each in the order that came to most.

    `kept`: gangs that stay where they are, in a valid answer.
    """
    unknown = find_unknown(demand)
    priorities = sorted({gang.priority for gang in demand.gangs}, reverse=True)
    known = [gang for gang in range(len(demand.gangs)) if gang not in unknown]
    filling = Filling(demand, kinds, ADDED_STEPS if kept else MOST_STEPS)
    filling.keep(kept)
    placed = frozenset(filling.frames)
    for number, priority in enumerate(priorities):
        level = [
            gang
            for gang in known
            if demand.gangs[gang].priority == priority and gang not in placed
        ]
        # What a priority may take leaves as much for each of the next ones.
        share = filling.steps // (len(priorities) - number)
        _Level(demand, filling, level, filling.steps - share).place()
    for gang in known:
        if gang in filling.frames and demand.gangs[gang].is_elastic:
            filling.grow(gang)
    return Constructed(
        name_devices(demand, filling.views, filling.frames.values()),
        _count_value(demand, filling, priorities),
    )


def find_unknown(demand: Demand) -> frozenset[int]:
    """Find the gangs whose rules are not known here; these are left out.

    Of claims that pods on several nodes share: such that ask for all devices, since
    those depend on the node, and gangs with domains of devices, since what is shared
    counts there.
    """
    return frozenset(
        rules.gang
        for rules in demand.gang_rules
        if rules.shared
        and (
            any(key.column is not None for key, _ in rules.placed)
            or any(rule.key.column is not None for rule in rules.together)
            or any(rule.key.column is not None for rule in rules.spread)
            or any(
                ask.all_devices
                for shared in rules.shared
                for ask in demand.member_kinds[shared.claim].asks
            )
        )
    )


def _count_value(
    demand: Demand, filling: Filling, priorities: Sequence[int]
) -> tuple[int, ...]:
    weights, extra = dict.fromkeys(priorities, 0), dict.fromkeys(priorities, 0)
    for gang, frame in filling.frames.items():
        part = demand.gangs[gang]
        weights[part.priority] += part.weight
        counts = Counter(pod.member for pod in frame.pods)
        pods = [counts[member] for member in range(len(part.members))]
        extra[part.priority] += count_extra(demand, gang, pods)
    return (*weights.values(), *extra.values())


def count_extra(demand: Demand, gang: int, pods: Sequence[int]) -> int:
    """Add up what pods are worth without which a gang were in; by member."""
    part = demand.gangs[gang]
    if not part.is_elastic:
        return 0
    return sum(
        (count - member.least) * demand.member_kinds[cells[0].kind].worth
        for cells, member, count in zip(
            demand.cells_of[gang], part.members, pods, strict=True
        )
    )


class _Level:
    """The gangs of one priority, on what more urgent ones left."""

    def __init__(
        self, demand: Demand, filling: Filling, gangs: list[int], spared: int
    ) -> None:
        """`spared`: steps that are for others."""
        self._spared = spared
        self._gangs = gangs
        self._filling = filling
        self._parts = demand.gangs
        self._passes = PASSES if demand.query.domains else 1
        self._best: tuple[int, int] = (-1, 0)
        """The weight that was in, and the devices that were left."""
        self._how: How = ((), STYLES[0])
        """The order and the style that reached it."""

    @property
    def _is_spent(self) -> bool:
        return self._filling.steps <= max(self._spared, 0)

    def place(self) -> None:
        """Try orders, then put first who found no place; and keep the best."""
        everything = sum(self._parts[gang].weight for gang in self._gangs)
        tried = set[How]()
        for how in self._list_orders():
            if how in tried or (self._is_spent and tried):
                continue
            tried.add(how)
            self._try(how)
            if self._best[0] == everything:
                break
        if self._best[0] < everything:
            self._try_turns(tried, everything)
        self._filling.steps = max(self._filling.steps, REPEAT_STEPS)
        order, style = self._how
        self._filling.begin(style)
        self._fill(order)

    def _try_turns(self, tried: set[How], everything: int) -> None:
        """Put first who found no place: all of them, or one, in turn."""
        order, style = self._how
        waiting = self._try(self._how)
        for turn in range(MOST_TURNS):
            if not waiting or self._is_spent:
                return
            some = waiting if turn % 2 else waiting[turn // 2 % len(waiting) :][:1]
            order = tuple(dict.fromkeys((*some, *order)))
            if (order, style) in tried:
                style = STYLES[turn % len(STYLES)]
                if (order, style) in tried:
                    continue
            tried.add((order, style))
            waiting = self._try((order, style))
            if self._best[0] == everything:
                return

    def _list_orders(self) -> Iterator[How]:
        for order in ORDERS:
            gangs = sorted(self._gangs, key=lambda gang: order(self._parts[gang]))
            for style in STYLES:
                yield tuple(gangs), style

    def _try(self, how: How) -> tuple[int, ...]:
        """Place gangs in an order, and take all back; returns who found no place."""
        order, style = how
        begun = self._filling.begin(style)
        waiting = self._fill(order)
        weight = sum(self._parts[g].weight for g in order) - sum(
            self._parts[g].weight for g in waiting
        )
        value = (weight, self._filling.count_free())
        self._filling.steps -= 1
        if value > self._best:
            self._best, self._how = value, how
        self._filling.take_back(begun)
        return waiting

    def _fill(self, order: Sequence[int]) -> tuple[int, ...]:
        """Place gangs in an order; returns who found no place."""
        waiting = tuple(order)
        for _ in range(self._passes):
            left = tuple(gang for gang in waiting if not self._filling.place(gang))
            if len(left) == len(waiting):
                break
            waiting = left
        return waiting


def _count_devices(gang: GangPart) -> int:
    return sum(member.asked * member.least for member in gang.members)
