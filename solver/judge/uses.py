"""How uses of devices get along: exclusive devices, capacity, counters, groups.

Everything that is given out in a decision at once, beside what others have. Admin
access takes nothing (KEP-5018), but a claim has a device only once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from contracts.ids import DeviceID, NodeName, PoolID
from solver.judge.amounts import consumption_of
from solver.judge.facts import DeviceFacts, Facts, Violations
from solver.problem.gangs import SubrequestPart


class Use(Struct, frozen=True, kw_only=True, gc=False):
    """One device given to one request of a pod."""

    pod: str
    node: NodeName
    device: DeviceID
    claim: int
    request: int
    subrequest: SubrequestPart
    facts: DeviceFacts
    shared: str = ""
    """The ResourceClaim, if several pods share it; empty: it is the pod's alone."""

    @property
    def shareable(self) -> bool:
        """True if several requests may have the device."""
        return self.facts.shareable

    @property
    def position(self) -> tuple[int, int]:
        """Where the request stands in the pod."""
        return (self.claim, self.request)


def judge_uses(facts: Facts, uses: list[Use]) -> Violations:
    """Judge all that is given out together."""
    yield from _devices_exclusive(uses)
    admins = {use.pod for use in uses if use.subrequest.admin_access}
    uses_by_pod: dict[str, list[Use]] = defaultdict(list)
    for use in uses if admins else ():
        if use.pod in admins:
            uses_by_pod[use.pod].append(use)
    for pod_uses in uses_by_pod.values():
        yield from _admin_order(pod_uses)
    counted = [use for use in uses if not use.subrequest.admin_access]
    yield from _sums_hold(facts, counted)


def _devices_exclusive(uses: list[Use]) -> Violations:
    """No device that cannot be shared is given twice."""
    owners: dict[DeviceID, Use] = {}
    for use in uses:
        if use.facts.shareable or use.subrequest.admin_access:
            continue
        if owners.setdefault(use.device, use) is not use:
            yield f"devicesExclusive: {use.device} is given to {use.pod} again"


def _admin_order(pod_uses: list[Use]) -> Violations:
    """A claim has a device once, and not again after admin access to it."""
    for first in pod_uses:
        for second in pod_uses:
            if first.device != second.device or first.shareable:
                continue
            if first.position >= second.position:
                continue
            again = first.claim == second.claim
            late = first.subrequest.admin_access and not second.subrequest.admin_access
            if again or late:
                yield f"adminOrder: {first.pod} has {first.device} again"


def _sums_hold(facts: Facts, uses: list[Use]) -> Violations:
    """What is drawn from each device and each pool is there."""
    yield from _capacity_suffices(facts, uses)
    uses_by_pool: dict[PoolID, list[Use]] = defaultdict(list)
    for use in uses:
        if use.facts.device.consumes_counters:
            uses_by_pool[use.device.pool_id].append(use)
    for pool, pool_uses in uses_by_pool.items():
        yield from _counters_suffice(facts, pool, pool_uses)
        if facts.features.compatibility_groups:
            yield from _groups_agree(facts, pool, pool_uses)


def _capacity_suffices(facts: Facts, uses: list[Use]) -> Violations:
    """Shares leave no capacity overdrawn; others' shares count.

    One use alone never takes more than there is: that is judged with the device.
    """
    if not facts.features.consumable_capacity:
        return
    totals: dict[DeviceID, dict[str, int]] = {}
    for use in uses:
        of_others, device = use.facts.shares, use.facts.device
        if not (use.facts.shareable or of_others):
            continue
        amounts = consumption_of(
            device, use.subrequest.capacity, facts.features, use.device.driver
        )
        total = totals.setdefault(use.device, dict(of_others or {}))
        if not use.shareable:
            total = dict(of_others or {})
        for name, amount in (amounts or {}).items():
            total[name] = total.get(name, 0) + amount
            if total[name] > device.capacity[name].value.nano:
                yield f"capacitySuffices: {use.device} gives too much {name}"


def _charged_uses(uses: Iterable[Use]) -> list[Use]:
    """List the uses that draw anew: a shared device once, and if it is new."""
    charged, shared = [], set()
    for use in uses:
        if use.shareable:
            if use.facts.shares is not None or use.device in shared:
                continue
            shared.add(use.device)
        charged.append(use)
    return charged


def _counters_suffice(facts: Facts, pool: PoolID, uses: list[Use]) -> Violations:
    """No counter of a pool is overdrawn once a device draws from any of them."""
    charged = _charged_uses(uses)
    for node in {use.node for use in charged}:
        left = facts.counters_left_of(node, pool)
        for use in charged:
            for consumption in use.facts.device.consumes_counters:
                for name, counter in consumption.counters.items():
                    key = (consumption.counter_set, name)
                    left[key] = left.get(key, 0) - counter.value.nano
        for (counter_set, name), amount in left.items():
            if amount < 0:
                yield f"countersSuffice: {pool} has too little {counter_set}/{name}"


def _groups_agree(facts: Facts, pool: PoolID, uses: list[Use]) -> Violations:
    """The devices of a counter set have a group in common, or none has any."""
    charged = _charged_uses(uses)
    for node in {use.node for use in charged}:
        visible = facts.find_pool(node, pool)
        devices = [use.facts.device for use in charged]
        of_others = (facts.draws_in_use(visible, pool) if visible else None) or []
        groups_by_set: dict[str, list[set[str]]] = defaultdict(list)
        for consumption in (
            *(each for device in devices for each in device.consumes_counters),
            *of_others,
        ):
            groups = set(consumption.compatibility_groups or ())
            groups_by_set[consumption.counter_set].append(groups)
        drawn_from = {
            consumption.counter_set
            for device in devices
            for consumption in device.consumes_counters
        }
        for name in sorted(drawn_from):
            groups_of_devices = groups_by_set[name]
            if any(groups_of_devices) and not set.intersection(*groups_of_devices):
                yield f"groupsAgree: devices on {pool}/{name} have no group in common"
