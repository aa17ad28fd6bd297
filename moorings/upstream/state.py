"""The state of a pod's search: devices given out so far, and checks of one more.

Mirrors the order of kube-scheduler's checks: in use, node operations, counters, taints,
constraints, capacity. Everything that is taken can be taken back, last first.

Source: k8s.io/dynamic-resource-allocation/structured, allocateDevice.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from contracts.device import Device, DeviceCounterConsumption
from moorings.upstream.constraints import Constraint
from moorings.upstream.world import RequestData, World
from solver.devices.candidates import indices_of
from solver.errors import FatalError
from solver.problem.gangs import ClaimPart

CounterTotals = dict[tuple[str, str], int]
"""(counter set, counter) -> 1e-9 units."""
CommonGroups = frozenset[str] | None
"""Compatibility groups that devices have in common; None: they have none."""
SetKey = tuple[int, str]
"""(pool, counter set)."""


class Undo(Struct):
    """The changes of one device, for `give_back`."""

    index: int
    counters: bool = False
    groups: tuple[tuple[SetKey, bool, CommonGroups], ...] = ()
    """(counter set, whether this pod had a device on it, what was common)."""
    constraints: int = 0
    claim: int | None = None
    share: dict[str, int] | None = None


class State:
    """The devices that are given out.

    What `take` gave, `give_back` must get in the reverse order.
    """

    def __init__(self, world: World, claims: tuple[ClaimPart, ...]) -> None:
        self.world = world
        self._claims = claims
        self.constraints = [
            [Constraint(world, constraint) for constraint in claim.constraints]
            for claim in claims
        ]
        self.claims_of: dict[int, list[int]] = {}
        """Claims that have an exclusive device, by device."""
        self.shares: dict[int, list[dict[str, int]]] = {}
        """Consumption of each share of this pod, by device."""
        self._consumed: dict[int, CounterTotals] = {}
        """Counters that this pod consumes, by pool."""
        self._groups: dict[SetKey, CommonGroups] = {}

    def is_in_use(self, request: RequestData, index: int) -> bool:
        """True if a device cannot be used at all."""
        claims = self.claims_of.get(index)
        if request.part.admin_access:
            return bool(claims) and request.claim in (claims or ())
        return bool(claims) or self.world.devices[index].held

    def fits(self, request: RequestData, index: int) -> bool:
        """True if the remaining capacity of the device is enough.

        Raises:
            FatalError: the amount cannot be computed.
        """
        amounts = self.world.amounts_of(request, index)
        if amounts is None:
            return False
        if not amounts:
            return True
        device = self.world.devices[index]
        of_others, of_pod = device.shares or {}, self.shares.get(index, ())
        return all(
            of_others.get(name, 0)
            + sum(share.get(name, 0) for share in of_pod)
            + amount.nano
            <= device.device.capacity[name].value.nano
            for name, amount in amounts.items()
        )

    def take(self, request: RequestData, index: int, *, must: bool) -> Undo | None:
        """Give a selected device to a request; None: it may not be.

        Raises:
            FatalError: `must`, and a constraint stands in the way; or a value cannot
                be computed.
        """
        # The order is kube-scheduler's: it decides which error is met first.
        device, undo = self.world.devices[index], Undo(index)
        is_admin_share = request.part.admin_access and device.shareable
        if self.is_in_use(request, index) and not is_admin_share:
            return None
        if not device.supported:
            return None
        if not self._take_counters(undo):
            self.give_back(request, undo)
            return None
        if not self.world.tolerance_of(request.part)[index]:
            self.give_back(request, undo)
            return None
        for constraint in self.constraints[request.claim]:
            if not constraint.add(request, index):
                self.give_back(request, undo)
                if must:
                    raise FatalError(
                        f"{request.subject}: cannot add device {device.name} because a "
                        "claim constraint would not be satisfied"
                    )
                return None
            undo.constraints += 1
        if not self.fits(request, index):
            self.give_back(request, undo)
            return None
        # Nothing can refuse it any more.
        self._record_device(request, undo)
        return undo

    def _take_counters(self, undo: Undo) -> bool:
        """Draw from the counters of a device; False: they do not bear it."""
        device = self.world.devices[undo.index]
        if not device.device.consumes_counters:
            return True
        # A shared device draws once, with its first share.
        is_shared_already = device.shares is not None or undo.index in self.shares
        if device.shareable and is_shared_already:
            return True
        if self.world.features.compatibility_groups and not self._join_groups(undo):
            return False
        return self._charge_counters(undo)

    def _record_device(self, request: RequestData, undo: Undo) -> None:
        index = undo.index
        if self.world.devices[index].shareable:
            amounts = self.world.amounts_of(request, index) or {}
            undo.share = {name: amount.nano for name, amount in amounts.items()}
            self.shares.setdefault(index, []).append(undo.share)
        else:
            undo.claim = request.claim
            self.claims_of.setdefault(index, []).append(request.claim)

    def give_back(self, request: RequestData, undo: Undo) -> None:
        """Undo what `take` did."""
        index = undo.index
        if undo.share is not None:
            self.shares[index].pop()
            if not self.shares[index]:
                del self.shares[index]
        if undo.claim is not None:
            self.claims_of[index].pop()
            if not self.claims_of[index]:
                del self.claims_of[index]
        added = self.constraints[request.claim][: undo.constraints]
        for constraint in reversed(added):
            constraint.remove(request)
        if undo.counters:
            self._consume_counters(index, -1)
        self._leave_groups(undo)

    # --- counters ------------------------------------------------------------------

    @cached_property
    def _list_allocated(self) -> list[tuple[int, Device]]:
        """The devices of the node's pools that other claims have, with their pool."""
        allocated: list[tuple[int, Device]] = []
        for number, pool in enumerate(self.world.node.pools):
            if pool.use is None or not pool.usable:
                continue
            names = {*pool.use.taken, *(share.device for share in pool.use.shared)}
            allocated.extend(
                (number, pool.devices[bit])
                for bit in indices_of(pool.targeting | pool.elsewhere)
                if pool.devices[bit].name in names
            )
        return allocated

    @cached_property
    def _available_counters(self) -> dict[int, CounterTotals]:
        """What this pod may draw from each counter, by pool."""
        left: dict[int, CounterTotals] = {
            number: {
                (counter_set.name, name): counter.value.nano
                for counter_set in pool.counters
                for name, counter in counter_set.counters.items()
            }
            for number, pool in enumerate(self.world.node.pools)
        }
        for number, device in self._list_allocated:
            for key, amount in _list_draws(device):
                if key in left[number]:
                    left[number][key] -= amount
        return left

    def _charge_counters(self, undo: Undo) -> bool:
        """Reserve counters; every counter of the pool must bear it."""
        pool = self.world.devices[undo.index].pool
        self._consume_counters(undo.index, 1)
        undo.counters = True
        consumed = self._consumed[pool]
        return all(
            consumed.get(key, 0) <= available
            for key, available in self._available_counters[pool].items()
        )

    def _consume_counters(self, index: int, factor: int) -> None:
        device = self.world.devices[index]
        consumed = self._consumed.setdefault(device.pool, {})
        for key, amount in _list_draws(device.device):
            consumed[key] = consumed.get(key, 0) + factor * amount

    # --- compatibility groups ------------------------------------------------------

    @cached_property
    def _groups_of_others(self) -> dict[SetKey, CommonGroups]:
        """The groups that the devices of other claims have in common."""
        common: dict[SetKey, CommonGroups] = {}
        for number, device in self._list_allocated:
            for consumption in device.consumes_counters:
                key = (number, consumption.counter_set)
                groups = _groups_of(consumption)
                if key not in common:
                    common[key] = groups
                elif groups is not None and common[key] is not None:
                    common[key] = (common[key] or frozenset()) & groups
        return common

    def _join_groups(self, undo: Undo) -> bool:
        """Let a device join the others on its counter sets; False: it does not fit."""
        device = self.world.devices[undo.index]
        changed = list[tuple[SetKey, bool, CommonGroups]]()
        for consumption in device.device.consumes_counters:
            key = (device.pool, consumption.counter_set)
            # First who is on the set: this pod's devices, else those of others.
            has_own = key in self._groups
            joined = self._groups if has_own else self._groups_of_others
            common = joined.get(key)
            # Then what stays in common: all have groups and share one, or none has any.
            groups = _groups_of(consumption)
            remaining = groups
            if key in joined:
                remaining = common & groups if common is not None and groups else common
                both_or_none = (common is None) == (groups is None)
                if not both_or_none or remaining == frozenset():
                    undo.groups = tuple(changed)
                    self._leave_groups(undo)
                    return False
            changed.append((key, has_own, common))
            self._groups[key] = remaining
        undo.groups = tuple(changed)
        return True

    def _leave_groups(self, undo: Undo) -> None:
        """Undo what joining changed."""
        for key, had_own, common in reversed(undo.groups):
            if had_own:
                self._groups[key] = common
            else:
                del self._groups[key]
        undo.groups = ()


def _list_draws(device: Device) -> list[tuple[tuple[str, str], int]]:
    """List what a device draws from the counters of its pool."""
    return [
        ((consumption.counter_set, name), counter.value.nano)
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    ]


def _groups_of(consumption: DeviceCounterConsumption) -> CommonGroups:
    groups = consumption.compatibility_groups
    return frozenset(groups) if groups else None
