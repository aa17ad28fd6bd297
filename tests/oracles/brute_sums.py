"""Whether what is used of devices adds up to no more than there is."""

from __future__ import annotations

from tests.oracles.brute_world import Place, Thing, World

Cost = tuple[tuple[str, int], ...]
"""What a use consumes: (capacity, 1e-9 units), sorted."""


def sums_hold(world: World, place: Place, uses: list[tuple[Thing, Cost]]) -> bool:
    """Check capacities, counters and compatibility groups, seen from one place."""
    totals = dict[tuple[object, str], int]()
    left, groups = (
        dict(place.counters),
        {k: list(v) for k, v in place.members.items()},
    )
    charged: set[object] = set()
    touched: set[object] = set()
    touched_sets: set[object] = set()
    for thing, cost in uses:
        shares = world.shares(thing.name)
        if world.features.consumable_capacity:
            for name, amount in cost:
                key = (thing.name, name)
                if not world.shareable(thing):
                    totals[key] = (shares or {}).get(name, 0)
                totals[key] = totals.get(key, (shares or {}).get(name, 0)) + amount
                if totals[key] > thing.device.capacity[name].value.nano:
                    return False
        if world.shareable(thing) and (shares is not None or thing.name in charged):
            continue
        charged.add(thing.name)
        pool = (thing.name.driver, thing.name.pool)
        seen_here = {p for p, _, _ in place.counters}
        for c in thing.device.consumes_counters if pool in seen_here else ():
            touched.add(pool)
            mine = frozenset(c.compatibility_groups or ())
            groups.setdefault((pool, c.counter_set), []).append(mine)
            touched_sets.add((pool, c.counter_set))
            for name, counter in c.counters.items():
                key_of = (pool, c.counter_set, name)
                left[key_of] = left.get(key_of, 0) - counter.value.nano
    if any(amount < 0 for (pool, _, _), amount in left.items() if pool in touched):
        return False
    if not world.features.compatibility_groups:
        return True
    return all(
        not any(listed) or bool(frozenset.intersection(*listed))
        for key, listed in groups.items()
        if key in touched_sets
    )
