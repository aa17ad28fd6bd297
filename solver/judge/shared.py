"""Whether pods get along: exclusive devices, capacity, counters, groups.

Everything that is given out in a decision at once, beside what others have. A pod's own
devices must fit with those it has by admin access; other pods never see those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from contracts.ids import DeviceID, NodeName, PoolID
from solver.judge.amounts import consumed
from solver.judge.facts import DeviceFacts, Facts
from solver.problem.problem import SubrequestPart

Violations = Iterator[str]


class Use(Struct, frozen=True, kw_only=True):
    """One device given to one request of a pod."""

    pod: str
    node: NodeName
    device: DeviceID
    claim: int
    request: int
    asked: SubrequestPart
    known: DeviceFacts

    @property
    def shareable(self) -> bool:
        """Whether several requests may have the device."""
        return self.known.shareable

    @property
    def place(self) -> tuple[int, int]:
        """Where the request stands in the pod."""
        return (self.claim, self.request)


def shared_rules(facts: Facts, uses: list[Use]) -> Violations:
    """Judge all that is given out together."""
    yield from _exclusive(uses)
    by_pod: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        by_pod[use.pod].append(use)
    for mine in by_pod.values():
        if any(use.asked.admin_access for use in mine):
            yield from _admin(mine)
            yield from _sums(facts, mine)
    yield from _sums(facts, [use for use in uses if not use.asked.admin_access])


def _exclusive(uses: list[Use]) -> Violations:
    """No device that cannot be shared is given twice."""
    owners: dict[DeviceID, str] = {}
    for use in uses:
        if use.shareable or use.asked.admin_access:
            continue
        if use.device in owners:
            yield f"devicesExclusive: {use.device} is given to {use.pod} again"
        owners[use.device] = use.pod


def _admin(mine: list[Use]) -> Violations:
    """In a claim a device is had once; nobody has it after admin access to it."""
    for first in mine:
        for second in mine:
            if first.device != second.device or first.shareable:
                continue
            if first.place >= second.place:
                continue
            again = first.claim == second.claim
            late = first.asked.admin_access and not second.asked.admin_access
            if again or late:
                yield f"adminOrder: {first.pod} has {first.device} again"


def _sums(facts: Facts, uses: list[Use]) -> Violations:
    yield from _capacity(facts, uses)
    by_pool: dict[PoolID, list[Use]] = defaultdict(list)
    for use in uses:
        if use.known.device.consumes_counters:
            by_pool[use.device.pool_id].append(use)
    for pool, mine in by_pool.items():
        yield from _counters(facts, pool, mine)
        if facts.features.compatibility_groups:
            yield from _groups(facts, pool, mine)


def _capacity(facts: Facts, uses: list[Use]) -> Violations:
    """Shares leave no capacity overdrawn; others' shares count.

    One use alone never takes more than there is: that is judged with the device.
    """
    if not facts.features.consumable_capacity:
        return
    fractional = facts.features.fractional_capacity_range
    totals: dict[DeviceID, dict[str, int]] = {}
    for use in uses:
        known = use.known
        if not (known.shareable or known.shares):
            continue
        amounts = consumed(known.device, use.asked.capacity, fractional=fractional)
        total = totals.setdefault(use.device, dict(known.shares or {}))
        if not use.shareable:
            total = dict(known.shares or {})
        for name, amount in (amounts or {}).items():
            total[name] = total.get(name, 0) + amount
            if total[name] > known.device.capacity[name].value.nano:
                yield f"capacitySuffices: {use.device} gives too much {name}"


def _charged(uses: Iterable[Use]) -> list[Use]:
    """List the uses that draw anew: a shared device once, and if it is new."""
    found, once = [], set()
    for use in uses:
        if use.shareable:
            if use.known.shares is not None or use.device in once:
                continue
            once.add(use.device)
        found.append(use)
    return found


def _counters(facts: Facts, pool: PoolID, uses: list[Use]) -> Violations:
    """No counter of a pool is overdrawn once a device draws from any of them."""
    charged = _charged(uses)
    for node in {use.node for use in charged}:
        left = facts.counters_left(node, pool)
        for use in charged:
            for consumption in use.known.device.consumes_counters:
                for name, counter in consumption.counters.items():
                    key = (consumption.counter_set, name)
                    left[key] = left.get(key, 0) - counter.value.nano
        for (counter_set, name), amount in left.items():
            if amount < 0:
                yield f"countersSuffice: {pool} has too little {counter_set}/{name}"


def _groups(facts: Facts, pool: PoolID, uses: list[Use]) -> Violations:
    """The devices of a counter set have a group in common, or none has any."""
    charged = _charged(uses)
    for node in {use.node for use in charged}:
        seen = facts.seen(node, pool)
        devices = [use.known.device for use in charged]
        everyone = [*devices, *(facts.in_use(seen, pool) if seen else ())]
        sets: dict[str, list[set[str]]] = defaultdict(list)
        for device in everyone:
            for consumption in device.consumes_counters:
                groups = set(consumption.compatibility_groups or ())
                sets[consumption.counter_set].append(groups)
        mine = {c.counter_set for d in devices for c in d.consumes_counters}
        for name in sorted(mine):
            if any(sets[name]) and not set.intersection(*sets[name]):
                yield f"groupsAgree: devices on {pool}/{name} have no group in common"
