"""The cluster by time: what it is once so many of those that run have ended.

Made once for a look at it, for all that is asked about then: each end costs once what
it is about, in whatever order states are asked for. Pure.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Mapping

from contracts.ids import DeviceID, NodeName
from solver.problem.free_devices import list_free
from solver.snapshot.device_uses import DeviceUse, list_holders
from solver.snapshot.parts import PoolPart, pool_key
from solver.snapshot.snapshot import Snapshot
from solver.timeline.futures import Members, list_results, without_gangs
from solver.timeline.runs import Seconds, count_held, list_runs


class Timetable:
    """Who ends when, and the cluster in between."""

    def __init__(self, snapshot: Snapshot, now_s: Seconds) -> None:
        self.snapshot = snapshot
        self.now_s = now_s
        self.runs = list_runs(snapshot, now_s)
        """In the order of their ends."""
        self.ends = [run.ends_s for run in self.runs if run.ends_s is not None]
        """Those that are known, ascending."""
        self._free: dict[int, dict[NodeName, int]] = {}
        self._states = {0: snapshot}
        self._made = [0]

    def count_ended(self, time_s: Seconds) -> int:
        """Count who has ended by then, of those of whom it is known."""
        return bisect_right(self.ends, time_s)

    def at(self, time_s: Seconds) -> Snapshot:
        """Return the cluster at a time to come."""
        return self.after(self.count_ended(time_s))

    def after(self, ended: int) -> Snapshot:
        """Return the cluster once so many have ended, in their order."""
        known = self._states.get(ended)
        if known is not None:
            return known
        before = self._made[bisect_right(self._made, ended) - 1]
        more = (run.record for run in self.runs[before:ended])
        state = without_gangs(self._states[before], more)
        insort(self._made, ended)
        self._states[ended] = state
        return state

    def list_free(self, ended: int) -> Mapping[NodeName, int] | None:
        """List the devices that are free at most once so many have ended, by node.

        Without making the cluster of that time. None: it cannot be told by counting.
        """
        if ended in self._free:
            return self._free[ended]
        before = list_free(self.snapshot.inventory.pages)
        # What claims hold besides is not counted.
        if before is None or len(self.snapshot.claims):
            return None
        for run in self.runs[:ended]:
            for node, devices in count_held(run.record).items():
                before[node] = before.get(node, 0) + devices
        self._free[ended] = before
        return before

    def list_free_beside(
        self, ended: int, kept: Iterable[Members]
    ) -> Mapping[NodeName, int] | None:
        """List them beside what is kept and begins by then; as in `list_free`."""
        free = self.list_free(ended)
        if free is None:
            return None
        left = dict(free)
        gone = {f"gang/{run.record.key}" for run in self.runs[:ended]}
        results = (result for members in kept for result in list_results(members))
        for device in {result.device_id for result in results}:
            node = self._find_free(device, gone)
            if node is not None:
                left[node] -= 1
        return left

    def _find_free(self, device: DeviceID, gone: Collection[str]) -> NodeName | None:
        """Find the node of a device that is free once some holders are gone."""
        inventory = self.snapshot.inventory
        key = pool_key(device.driver, device.pool)
        node = inventory.pool_nodes.get(key)
        pool = None if node is None else inventory.pages.get(node, key)
        use = (inventory.holders.get(key) or {}).get(device.device, DeviceUse())
        if not isinstance(pool, PoolPart) or not list_holders(use).issubset(gone):
            return None
        is_there = any(each.name == device.device for each in pool.devices)
        return node if is_there else None
