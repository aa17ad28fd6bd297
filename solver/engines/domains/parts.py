"""What of a gang must be in one domain, where labels of nodes say what a domain is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from solver.kinds.demand import Demand
from solver.kinds.gang_rules import GangRules, PodsTogether


class PodRange(Struct, frozen=True):
    """Pods of a member that follow each other by index."""

    member: int
    first: int
    """Index of the first."""
    pods: int


class DomainPart(Struct, frozen=True):
    """Pods of a gang on nodes that have each of these labels with one value."""

    labels: tuple[int, ...]
    """Indices into `Query.labels`; none: the pods may be anywhere."""
    ranges: tuple[PodRange, ...]


def find_parts(
    demand: Demand, *, keeps_preferences: bool = False
) -> dict[int, tuple[DomainPart, ...]]:
    """Cut gangs whose rules span pods into parts, as far as they come to such parts.

    Not those with rules about attributes or devices of several pods, with a limit by
    domain, with groups inside of groups, with a claim for several nodes, beside pods
    that have their place, or with preferences. `keeps_preferences`: what is preferred
    makes parts, too.
    """
    found = {}
    for rules in demand.gang_rules:
        gang = demand.gangs[rules.gang]
        if gang.separated or gang.standing:
            continue
        if rules.has_preferences and not keeps_preferences:
            continue
        parts = _parts_of(demand, rules)
        if parts is not None:
            found[rules.gang] = parts
    return found


def find_whole(demand: Demand, gang: int) -> DomainPart:
    """Make all pods of a gang without rules one part, which may be anywhere."""
    return DomainPart((), tuple(own for own, _ in _list_ranges(demand, gang)))


def _parts_of(demand: Demand, rules: GangRules) -> tuple[DomainPart, ...] | None:
    if rules.sets or rules.spread:
        return None
    if any(rule.key.label is None for rule in rules.together):
        return None
    if any(key.label is None for key, _ in rules.placed):
        return None
    ranges_by_rules: dict[tuple[int, ...], list[PodRange]] = {}
    for piece, kind in _list_ranges(demand, rules.gang):
        own = tuple(i for i, rule in enumerate(rules.together) if kind in rule.kinds)
        labels = {rules.together[i].key.label for i in own}
        needed = {key.label for key, kinds in rules.placed if kind in kinds}
        if not needed <= labels:
            return None
        ranges_by_rules.setdefault(own, []).append(piece)
    # A rule that is about several parts has groups inside of its own.
    named = [rule for own in ranges_by_rules for rule in own]
    if len(named) > len(set(named)):
        return None
    return tuple(
        DomainPart(_labels_of(rules.together, own), tuple(ranges))
        for own, ranges in ranges_by_rules.items()
    )


def _labels_of(
    together: tuple[PodsTogether, ...], own: Iterable[int]
) -> tuple[int, ...]:
    labels = {together[rule].key.label for rule in own}
    return tuple(sorted(label for label in labels if label is not None))


def _list_ranges(demand: Demand, gang: int) -> Iterator[tuple[PodRange, int]]:
    """Go through the cells of a gang, each with its member kind."""
    for member, cells in enumerate(demand.cells_of[gang]):
        first = 0
        for cell in cells:
            yield PodRange(member, first, cell.pods), cell.kind
            first += cell.pods
