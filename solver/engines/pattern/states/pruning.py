"""Dominance pruning: what no pod can use any more is left out of a node's state.

Nothing comes back once it is taken, so what no pod of the batch can have now it can
never have later: devices whose counters are drawn dry, a NIC whose PCIe root has no GPU
left for the pods that want both. States that differ only in such devices become one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from solver.cache import cached
from solver.engines.pattern.states.canonical import share_equal
from solver.kinds.available import count_draws, do_groups_agree
from solver.kinds.demand import MemberKind, RequestAlternative
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape


class DeviceDemand(Struct, frozen=True, cache_hash=True):
    """One way in which some pod of the batch demands devices of a request kind."""

    alternative: RequestAlternative
    """Without claim, request and rank, which do not matter here."""
    partners: tuple[tuple[tuple[int, int, int], ...], ...]
    """For each matchAttribute over it: (kind, count, column) of all that must share."""
    columns: tuple[int, ...]
    """Its own column in each of them."""


def collect_device_demands(members: Sequence[MemberKind]) -> tuple[DeviceDemand, ...]:
    """Collect how pods may demand devices, each way once."""
    demands: dict[DeviceDemand, None] = {}
    for member in members:
        for index, alternative in enumerate(member.asks):
            partners, columns = [], []
            for constraint in member.constraints:
                column = dict(constraint.scope).get(index)
                if constraint.distinct or column is None:
                    continue
                columns.append(column)
                partners.append(_find_partners(member, constraint.scope))
            anonymous = structs.replace(alternative, claim=0, request=0, rank=0)
            demands[DeviceDemand(anonymous, tuple(partners), tuple(columns))] = None
    return tuple(demands)


def _find_partners(
    member: MemberKind, scope: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int, int], ...]:
    """Find what must share a value for certain: requests without alternatives."""
    return tuple(
        sorted(
            (member.asks[index].kind, member.asks[index].count, column)
            for index, column in scope
            if len(member.alternatives(member.asks[index].request)) == 1
        )
    )


def drop_empty_groups(shape: NodeShape) -> tuple[NodeShape, tuple[int, ...]]:
    """Leave out the groups without devices; the second value: indices of the rest."""
    kept = tuple(index for index, group in enumerate(shape.groups) if group.size)
    if len(kept) == len(shape.groups):
        return shape, kept
    groups = tuple(shape.groups[index] for index in kept)
    return structs.replace(shape, groups=groups), kept


@cached(bound=1 << 15)
def prune(
    shape: NodeShape, demands: tuple[DeviceDemand, ...], whole_kinds: int
) -> tuple[NodeShape, tuple[int, ...]]:
    """Leave out what nobody can use; the second value: indices of the groups kept.

    `whole_kinds`: the request kinds that mean all devices, one bit each; what they
    mean stays, so that `All` never comes to mean fewer devices.
    """
    # First count only the devices that counters, shares and sets still allow. A kind
    # that loses a device so can no longer have all of its devices.
    groups = [_limit_to_counters(shape, group) for group in shape.groups]
    incomplete = 0
    for group, limited in zip(shape.groups, groups, strict=True):
        if limited.size < group.size:
            incomplete |= group.mask
    # Then narrow what each group may serve until nothing changes: what one group no
    # longer serves may have been the partner that devices of another need.
    masks = [group.mask if group.size else 0 for group in groups]
    while True:
        usable = _find_usable_kinds(groups, masks, demands)
        narrowed = [
            mask & (kinds | whole_kinds)
            for mask, kinds in zip(masks, usable, strict=True)
        ]
        if narrowed == masks:
            break
        masks = narrowed
    # Finally leave out the groups that serve nothing, and cap the counters at what
    # the others could draw: amounts beyond that tell no states apart.
    kept = tuple(index for index, mask in enumerate(masks) if mask)
    pruned = tuple(
        share_equal(structs.replace(groups[index], mask=masks[index])) for index in kept
    )
    return (
        structs.replace(
            shape,
            groups=pruned,
            counters=_cap_counters(shape, pruned),
            all_free=shape.all_free & ~incomplete,
        ),
        kept,
    )


class _SortedDemands(Struct, frozen=True):
    """Demands by what they need to look at."""

    single: int
    """Kinds of which some pod demands one device and no partner, one bit each."""
    several: tuple[tuple[int, int], ...]
    """(kind, least count) of the others without partners."""
    with_partners: tuple[DeviceDemand, ...]


@cached(bound=64)
def _sort_demands(demands: tuple[DeviceDemand, ...]) -> _SortedDemands:
    least: dict[int, int] = {}
    for demand in demands:
        if not demand.partners:
            kind, count = demand.alternative.kind, demand.alternative.count
            least[kind] = min(count, least.get(kind, count))
    return _SortedDemands(
        single=sum(1 << kind for kind, count in least.items() if count <= 1),
        several=tuple((kind, count) for kind, count in least.items() if count > 1),
        with_partners=tuple(demand for demand in demands if demand.partners),
    )


def _find_usable_kinds(
    groups: Sequence[GroupShape],
    masks: Sequence[int],
    demands: tuple[DeviceDemand, ...],
) -> list[int]:
    """Find for each group the kinds that some pod could still have of it."""
    ordered = _sort_demands(demands)
    # First the demands without partners: enough devices will do.
    enough = ordered.single
    for kind, count in ordered.several:
        enough |= (_count_devices(groups, masks, kind) >= count) << kind
    usable = [mask & enough for mask in masks]
    # Then the others: enough devices, and enough that share a value.
    totals_by_value: dict[tuple[int, int], dict[int, int]] = {}
    for demand in ordered.with_partners:
        kind = demand.alternative.kind
        if _count_devices(groups, masks, kind) < demand.alternative.count:
            continue
        for partner, _, column in (p for found in demand.partners for p in found):
            if (partner, column) not in totals_by_value:
                totals = _count_by_value(groups, masks, partner, column)
                totals_by_value[partner, column] = totals
        for index, (group, mask) in enumerate(zip(groups, masks, strict=True)):
            if mask >> kind & 1 and not usable[index] >> kind & 1:
                usable[index] |= _has_partners(demand, group, totals_by_value) << kind
    return usable


def _count_devices(
    groups: Sequence[GroupShape], masks: Sequence[int], kind: int
) -> int:
    """Count the devices that may serve a kind."""
    pairs = zip(groups, masks, strict=True)
    return sum([group.size for group, mask in pairs if mask >> kind & 1])


def _count_by_value(
    groups: Sequence[GroupShape], masks: Sequence[int], kind: int, column: int
) -> dict[int, int]:
    """Count the devices that may serve a kind, by the values of a column."""
    totals: dict[int, int] = {}
    for group, mask in zip(groups, masks, strict=True):
        if mask >> kind & 1:
            for value in group.values[column]:
                totals[value] = totals.get(value, 0) + group.size
    return totals


def _has_partners(
    demand: DeviceDemand,
    group: GroupShape,
    totals_by_value: Mapping[tuple[int, int], Mapping[int, int]],
) -> bool:
    """True if some value of the group has enough devices for all that must share it.

    `totals_by_value`: devices by (kind, column), then by value.
    """
    return all(
        any(
            all(
                totals_by_value[kind, partner_column].get(value, 0) >= count
                for kind, count, partner_column in partners
            )
            for value in group.values[column]
        )
        for partners, column in zip(demand.partners, demand.columns, strict=True)
    )


def _limit_to_counters(shape: NodeShape, group: GroupShape) -> GroupShape:
    """Count of a group no more devices than its counters and sets allow."""
    traits = group.traits
    size = min(group.size, count_draws(traits.draws, shape.counters))
    if not do_groups_agree(traits, shape.sets):
        size = 0
    if traits.left is not None and size:
        # A shared device is still of use where any kind of request has a share left.
        capacities = traits.left
        is_of_use = any(
            group.mask >> kind & 1
            and all(left >= cost for left, cost in zip(capacities, costs, strict=True))
            for kind, costs in enumerate(traits.costs)
        )
        size = 1 if is_of_use else 0
    if size == group.size:
        return group
    return structs.replace(group, size=size)


def _cap_counters(
    shape: NodeShape, groups: Sequence[GroupShape]
) -> tuple[CounterShape, ...]:
    """Cap what is left of counters at what all devices together could draw."""
    most_drawn = [0] * len(shape.counters)
    for group in groups:
        for counter, amount in group.traits.draws:
            most_drawn[counter] += amount * group.size
    return tuple(
        CounterShape(min(counter.left, most), counter.identity)
        for counter, most in zip(shape.counters, most_drawn, strict=True)
    )
