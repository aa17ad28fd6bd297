"""What a pod's search has given out so far, and whether one more device may be.

Mirrors the order of kube-scheduler's checks: in use, node operations, counters, taints,
constraints, capacity. Everything that is taken can be taken back, last first.

Source: k8s.io/dynamic-resource-allocation/structured, allocateDevice.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from contracts.device import Device, DeviceCounterConsumption
from solver.devices.candidates import indices_of
from solver.engines.upstream.constraints import Constraint
from solver.engines.upstream.world import Ask, World
from solver.errors import FatalError
from solver.problem.problem import ClaimPart

Counters = dict[tuple[str, str], int]
"""(counter set, counter) -> 1e-9 units."""
Groups = frozenset[str] | None
"""Compatibility groups that devices have in common; None: they have none."""


class Undo(Struct):
    """What one device changed."""

    index: int
    counters: bool = False
    groups: tuple[tuple[tuple[int, str], bool, Groups], ...] = ()
    constraints: int = 0
    claim: int | None = None
    share: dict[str, int] | None = None


class State:
    """The devices that are given out."""

    def __init__(self, world: World, claims: tuple[ClaimPart, ...]) -> None:
        self.world = world
        self._claims = claims
        self.constraints = [
            [Constraint(world, item) for item in claim.constraints] for claim in claims
        ]
        self.claims_of: dict[int, list[int]] = {}
        """Claims that have an exclusive device, by device."""
        self.shares: dict[int, list[dict[str, int]]] = {}
        """What each share of this pod consumes, by device."""
        self._consumed: dict[int, Counters] = {}
        self._groups: dict[tuple[int, str], Groups] = {}

    def is_in_use(self, ask: Ask, index: int) -> bool:
        """Say whether a device is out of the question before anything is looked at."""
        claims = self.claims_of.get(index)
        if ask.part.admin_access:
            return bool(claims) and ask.claim in (claims or ())
        return bool(claims) or self.world.candidates[index].held

    def fits(self, ask: Ask, index: int) -> bool:
        """Say whether what is left of the device's capacity is enough.

        Raises:
            FatalError: the amount cannot be computed.
        """
        amounts = self.world.amounts(ask, index)
        if amounts is None:
            return False
        if not amounts:
            return True
        item = self.world.candidates[index]
        others, mine = item.shares or {}, self.shares.get(index, ())
        return all(
            others.get(name, 0) + sum(m.get(name, 0) for m in mine) + amount.nano
            <= item.device.capacity[name].value.nano
            for name, amount in amounts.items()
        )

    def take(self, ask: Ask, index: int, *, must: bool) -> Undo | None:
        """Give a selected device to a request; None: it may not be.

        Raises:
            FatalError: `must`, and a constraint stands in the way; or a value cannot
                be computed.
        """
        item, undo = self.world.candidates[index], Undo(index)
        if self.is_in_use(ask, index) and not (
            ask.part.admin_access and item.shareable
        ):
            return None
        if not item.supported:
            return None
        counted = item.shares is not None or index in self.shares
        if item.device.consumes_counters and not (item.shareable and counted):
            if self.world.features.compatibility_groups and not self._join(undo):
                return None
            if not self._charge(undo):
                self.give_back(ask, undo)
                return None
        if not self.world.tolerates(ask.part)[index]:
            self.give_back(ask, undo)
            return None
        for constraint in self.constraints[ask.claim]:
            if not constraint.add(ask, index):
                self.give_back(ask, undo)
                if must:
                    raise FatalError(
                        f"{ask.subject}: cannot add device {item.name} because a "
                        "claim constraint would not be satisfied"
                    )
                return None
            undo.constraints += 1
        if not self.fits(ask, index):
            self.give_back(ask, undo)
            return None
        self._mark(ask, index, undo)
        return undo

    def _mark(self, ask: Ask, index: int, undo: Undo) -> None:
        if self.world.candidates[index].shareable:
            amounts = self.world.amounts(ask, index) or {}
            undo.share = {name: amount.nano for name, amount in amounts.items()}
            self.shares.setdefault(index, []).append(undo.share)
        else:
            undo.claim = ask.claim
            self.claims_of.setdefault(index, []).append(ask.claim)

    def give_back(self, ask: Ask, undo: Undo) -> None:
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
        for constraint in reversed(self.constraints[ask.claim][: undo.constraints]):
            constraint.remove(ask)
        if undo.counters:
            self._consume(index, -1)
        self._leave(undo)

    # --- counters ------------------------------------------------------------------

    @cached_property
    def _allocated(self) -> list[tuple[int, Device]]:
        """The devices of the node's pools that other claims have, with their pool."""
        found: list[tuple[int, Device]] = []
        for number, seen in enumerate(self.world.node.pools):
            view = seen.view
            if seen.use is None or not view.usable:
                continue
            names = {*seen.use.taken, *(share.device for share in seen.use.shared)}
            found.extend(
                (number, view.devices[bit])
                for bit in indices_of(view.targeting | view.elsewhere)
                if view.devices[bit].name in names
            )
        return found

    @cached_property
    def _available(self) -> dict[int, Counters]:
        """What is left of each counter before this pod, by pool."""
        left: dict[int, Counters] = {
            number: {
                (item.name, name): counter.value.nano
                for item in seen.view.counters
                for name, counter in item.counters.items()
            }
            for number, seen in enumerate(self.world.node.pools)
        }
        for number, device in self._allocated:
            for key, amount in _draws(device):
                if key in left[number]:
                    left[number][key] -= amount
        return left

    def _charge(self, undo: Undo) -> bool:
        """Reserve counters; every counter of the pool must bear it."""
        pool = self.world.candidates[undo.index].pool
        self._consume(undo.index, 1)
        undo.counters = True
        consumed = self._consumed[pool]
        return all(
            consumed.get(key, 0) <= available
            for key, available in self._available[pool].items()
        )

    def _consume(self, index: int, factor: int) -> None:
        item = self.world.candidates[index]
        consumed = self._consumed.setdefault(item.pool, {})
        for key, amount in _draws(item.device):
            consumed[key] = consumed.get(key, 0) + factor * amount

    # --- compatibility groups ------------------------------------------------------

    @cached_property
    def _baseline(self) -> dict[tuple[int, str], Groups]:
        """The groups that the devices of other claims have in common."""
        found: dict[tuple[int, str], Groups] = {}
        for number, device in self._allocated:
            for consumption in device.consumes_counters:
                key = (number, consumption.counter_set)
                groups = _groups(consumption)
                if key not in found:
                    found[key] = groups
                elif groups is not None and found[key] is not None:
                    found[key] = (found[key] or frozenset()) & groups
        return found

    def _join(self, undo: Undo) -> bool:
        """Let a device join the others on its counter sets; False: it does not fit."""
        item = self.world.candidates[undo.index]
        saved = list[tuple[tuple[int, str], bool, Groups]]()
        for consumption in item.device.consumes_counters:
            key = (item.pool, consumption.counter_set)
            existed, has_members = key in self._groups, True
            before = self._groups.get(key)
            if not existed:
                has_members, before = key in self._baseline, self._baseline.get(key)
            groups = _groups(consumption)
            after = groups
            if has_members:
                after = before & groups if before is not None and groups else before
                fits = (before is None) == (groups is None) and after != frozenset()
                if not fits:
                    undo.groups = tuple(saved)
                    self._leave(undo)
                    return False
            saved.append((key, existed, before))
            self._groups[key] = after
        undo.groups = tuple(saved)
        return True

    def _leave(self, undo: Undo) -> None:
        """Undo what joining changed."""
        for key, existed, before in reversed(undo.groups):
            if existed:
                self._groups[key] = before
            else:
                del self._groups[key]
        undo.groups = ()


def _draws(device: Device) -> list[tuple[tuple[str, str], int]]:
    """List what a device draws from the counters of its pool."""
    return [
        ((consumption.counter_set, name), counter.value.nano)
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    ]


def _groups(consumption: DeviceCounterConsumption) -> Groups:
    found = consumption.compatibility_groups
    return frozenset(found) if found else None
