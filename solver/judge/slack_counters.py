"""What pods leave of a node's counters and counter sets, as the judge counts it."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from contracts.ids import DeviceID, NodeName, PoolID
from solver.judge.facts import Facts
from solver.judge.slack_devices import MOST_SHARES, SeenDevice

Groups = frozenset[str]


class LeftCounters:
    """What the devices of some pods leave, beside those that are in use already."""

    def __init__(
        self,
        facts: Facts,
        node: NodeName,
        seen: Iterable[SeenDevice],
        used: AbstractSet[DeviceID],
    ) -> None:
        self._left: dict[tuple[PoolID, str, str], int] = {}
        self._groups: dict[tuple[PoolID, str], list[Groups]] = {}
        self._is_grouped = facts.features.compatibility_groups
        drawing = [device for device in seen if device.draws or device.groups]
        for pool in {device.name.pool_id for device in drawing}:
            for (name, counter), amount in facts.counters_left_of(node, pool).items():
                self._left[pool, name, counter] = amount
            visible = facts.find_pool(node, pool)
            in_use = facts.draws_in_use(visible, pool) if visible else None
            for each in in_use or ():
                groups = frozenset(each.compatibility_groups or ())
                self._groups.setdefault((pool, each.counter_set), []).append(groups)
        for device in drawing:
            if device.name in used:
                self._charge(device)

    def _charge(self, device: SeenDevice) -> None:
        pool = device.name.pool_id
        for name, counter, amount in device.draws:
            self._left[pool, name, counter] -= amount
        for name, groups in device.groups:
            self._groups.setdefault((pool, name), []).append(groups)

    def allow(self, device: SeenDevice) -> bool:
        """Say whether one more pod could have a device that no pod has yet."""
        pool = device.name.pool_id
        return all(
            amount <= self._left[pool, name, counter]
            for name, counter, amount in device.draws
        ) and all(
            self._agree([*self._groups.get((pool, name), ()), groups])
            for name, groups in device.groups
        )

    def _agree(self, groups: list[Groups]) -> bool:
        if not self._is_grouped or not any(groups):
            return True
        return bool(frozenset.intersection(*groups))

    def count_draws(self, device: SeenDevice) -> int:
        """Count how many devices that draw the same the counters suffice for."""
        pool = device.name.pool_id
        bounds = [
            self._left[pool, name, counter] // amount
            for name, counter, amount in device.draws
            if amount
        ]
        return min(bounds, default=MOST_SHARES)
