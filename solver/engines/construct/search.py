"""The best of several answers, each made by taking gangs in one after the other.

Urgent gangs come first; of equal priority by age, by weight, by weight for each device,
or the largest. What pods are placed on is the node with least left, or the first. It
knows every rule but for those in `find_unknown`; its work is bounded by steps, so that
an answer is a function of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from solver.engines.construct.filling import Filling
from solver.engines.construct.naming import name_devices
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.gangs import GangPart

MOST_STEPS = 400_000
"""Nodes and devices that are tried over all answers."""
FIRST_STEPS = 200_000
"""Likewise for the first of them."""
PASSES = 2
"""How often a gang is tried that may be near to others which come later."""


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


class Constructed(Struct, frozen=True):
    """An answer, by names."""

    placements: tuple[GangPlacement, ...] = ()
    value: tuple[int, ...] = ()
    """The weight that is in by priority, highest first; then what extra pods are
    worth."""


def construct(demand: Demand, kinds: Sequence[NodeKind]) -> Constructed:
    """Make answers by several orders; the first of the best ones counts."""
    unknown = find_unknown(demand)
    priorities = sorted({gang.priority for gang in demand.gangs}, reverse=True)
    best = Constructed()
    tried = set[tuple[int, ...]]()
    left = MOST_STEPS
    for order in ORDERS:
        gangs = sorted(
            (gang for gang in range(len(demand.gangs)) if gang not in unknown),
            key=lambda gang, order=order: order(demand.gangs[gang]),  # type: ignore[misc]
        )
        if tuple(gangs) in tried:
            continue
        tried.add(tuple(gangs))
        for best_fit in (True, False):
            steps = min(left, FIRST_STEPS)
            filling = Filling(demand, kinds, steps, best_fit=best_fit)
            _fill(demand, filling, gangs)
            left -= steps - max(filling.steps, 0)
            value = _count_value(demand, filling, priorities)
            if value > best.value:
                named = name_devices(demand, filling.views, filling.frames.values())
                best = Constructed(named, value)
            if left <= 0 or _is_all_in(demand, value, priorities):
                return best
    return best


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


def _fill(demand: Demand, filling: Filling, gangs: Sequence[int]) -> None:
    """Take gangs in, level by level, then more pods of them."""
    priorities = dict.fromkeys(demand.gangs[gang].priority for gang in gangs)
    passes = PASSES if demand.query.domains else 1
    for priority in priorities:
        level = [gang for gang in gangs if demand.gangs[gang].priority == priority]
        for _ in range(passes):
            waiting = [gang for gang in level if not filling.place(gang)]
            if len(waiting) == len(level):
                break
            level = waiting
    if demand.is_elastic:
        for gang in gangs:
            if gang in filling.frames and demand.gangs[gang].is_elastic:
                filling.grow(gang)


def _count_value(
    demand: Demand, filling: Filling, priorities: Sequence[int]
) -> tuple[int, ...]:
    weights, extra = dict.fromkeys(priorities, 0), dict.fromkeys(priorities, 0)
    for gang, frame in filling.frames.items():
        part = demand.gangs[gang]
        weights[part.priority] += part.weight
        worth = [demand.member_kinds[pod.kind].worth for pod in frame.pods]
        least = sum(
            demand.member_kinds[cell.kind].worth * cell.least
            for cells in demand.cells_of[gang]
            for cell in cells
        )
        extra[part.priority] += sum(worth) - least
    return (*weights.values(), *extra.values())


def _is_all_in(
    demand: Demand, value: tuple[int, ...], priorities: Sequence[int]
) -> bool:
    everything = [0] * (2 * len(priorities))
    for gang, part in enumerate(demand.gangs):
        place = priorities.index(part.priority)
        everything[place] += part.weight
        everything[len(priorities) + place] += sum(
            demand.member_kinds[cell.kind].worth * (cell.pods - cell.least)
            for cells in demand.cells_of[gang]
            for cell in cells
        )
    return list(value) == everything


def _count_devices(gang: GangPart) -> int:
    return sum(member.asked * member.least for member in gang.members)
