"""Which devices may end their pods by now, and which later.

A taint with the effect `NoExecute` has kube-controller-manager delete the pods that use
the device. However many devices are said to be unhealthy at once, only so many begin
to do that within a minute; the others keep new pods away until it is their turn. A node
that is lost takes a moment longer, and a voice that is not the node's own does not
empty the cluster before somebody sees it. Pure; times are of any clock that only grows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from math import floor

from contracts.ids import DeviceID, NodeName, PoolID

FEWEST = 8
"""Devices a minute that a small fleet has all the same: those of one node."""
MINUTE_S = 60.0


class EvictionBudget:
    """The devices that want to end their pods, by node, and those that may."""

    def __init__(self, percent: float) -> None:
        """`percent` of all announced devices may begin with it in a minute."""
        self._percent = percent
        self._wanted: dict[NodeName, frozenset[DeviceID]] = {}
        self._admitted: set[DeviceID] = set()
        self._waiting: dict[DeviceID, None] = {}
        """Oldest first."""
        self._spent: deque[float] = deque()
        """When each of those began that did within a minute."""

    def want(self, node: NodeName, devices: Collection[DeviceID]) -> None:
        """Let a node's devices be these that are to end their pods, and no others."""
        old = self._wanted.pop(node, frozenset())
        new = frozenset(devices)
        if new:
            self._wanted[node] = new
        for device in old - new:
            self._admitted.discard(device)
            self._waiting.pop(device, None)
        for device in sorted(new - self._admitted):
            self._waiting.setdefault(device)

    def may_evict(self, device: DeviceID) -> bool:
        """True if it is a device's turn."""
        return device in self._admitted

    def admit(self, announced: int, now_s: float) -> frozenset[PoolID]:
        """Let those begin whose turn it is; returns their pools.

        `announced` devices there are in all.
        """
        while self._spent and now_s - self._spent[0] >= MINUTE_S:
            self._spent.popleft()
        allowed = max(FEWEST, floor(announced * self._percent / 100))
        left = allowed - len(self._spent) if self._percent else 0
        turn = list(self._waiting)[: max(left, 0)]
        for device in turn:
            del self._waiting[device]
            self._admitted.add(device)
            self._spent.append(now_s)
        return frozenset(device.pool_id for device in turn)
