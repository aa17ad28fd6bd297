"""EASY backfill by counts of devices per node: a peer, in plain Python.

Whoever came first starts first. The first that does not fit gets one reservation: the
earliest time at which enough devices are free if all run as long as they may. Younger
jobs start now if they end before, or if the first still fits then.

Source: Lifka, "The ANL/IBM SP scheduling system", 1995; Mu'alem and Feitelson, 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from msgspec import Struct

EasyJob = tuple[int, int, int, int]
"""When it came, how long it runs, how long it may, and its devices."""
Taken = list[tuple[int, int]]
"""Devices by the number of their node."""


class _Running(Struct):
    until_s: int
    """When it ends at the latest, by its author."""
    taken: Taken


class EasyBackfill:
    """Equal jobs of whole devices on nodes of which only counts are known."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._free = list(nodes)
        self._each = max(nodes)
        self._running: dict[int, _Running] = {}
        self._queue: list[int] = []
        self._jobs: Sequence[EasyJob] = ()
        self._starts: list[int | None] = []
        self._ends: list[tuple[int, int]] = []

    def run(self, jobs: Sequence[EasyJob]) -> list[int | None]:
        """Return when each job starts; None: it never fits."""
        self._jobs, self._starts = jobs, [None] * len(jobs)
        came = 0
        while came < len(jobs) or self._ends:
            arrival_s = jobs[came][0] if came < len(jobs) else None
            end_s = self._ends[0][0] if self._ends else None
            times = [each for each in (arrival_s, end_s) if each is not None]
            now_s = min(times)
            while self._ends and self._ends[0][0] == now_s:
                self._end(heappop(self._ends)[1])
            while came < len(jobs) and jobs[came][0] == now_s:
                self._queue.append(came)
                came += 1
            self._decide(now_s)
        return self._starts

    def _end(self, job: int) -> None:
        for node, count in self._running.pop(job).taken:
            self._free[node] += count

    def _decide(self, now_s: int) -> None:
        while self._queue:
            taken = self._place(self._free, self._queue[0])
            if taken is None:
                break
            self._start(self._queue.pop(0), taken, now_s)
        if len(self._queue) > 1:
            self._backfill(now_s)

    def _backfill(self, now_s: int) -> None:
        head = self._queue[0]
        shadow_s, then_free = self._find_shadow(head)
        for job in list(self._queue[1:]):
            taken = self._place(self._free, job)
            if taken is None:
                continue
            if now_s + self._jobs[job][2] > shadow_s:
                left = list(then_free)
                for node, count in taken:
                    left[node] -= count
                if min(left) < 0 or self._place(left, head) is None:
                    continue
                then_free = left
            self._queue.remove(job)
            self._start(job, taken, now_s)

    def _find_shadow(self, head: int) -> tuple[float, list[int]]:
        free = list(self._free)
        for each in sorted(self._running.values(), key=lambda each: each.until_s):
            for node, count in each.taken:
                free[node] += count
            if self._place(free, head) is not None:
                return each.until_s, free
        return float("inf"), free

    def _place(self, free: Sequence[int], job: int) -> Taken | None:
        """Place full nodes first, then the rest where the least is left over."""
        pods, rest = divmod(self._jobs[job][3], self._each)
        whole = [n for n, count in enumerate(free) if count >= self._each]
        if len(whole) < pods:
            return None
        taken = [(node, self._each) for node in whole[:pods]]
        if rest:
            used = set(whole[:pods])
            fits = [
                (count, node)
                for node, count in enumerate(free)
                if count >= rest and node not in used
            ]
            if not fits:
                return None
            taken.append((min(fits)[1], rest))
        return taken

    def _start(self, job: int, taken: Taken, now_s: int) -> None:
        for node, count in taken:
            self._free[node] -= count
        _, runs_s, may_s, _ = self._jobs[job]
        self._starts[job] = now_s
        self._running[job] = _Running(now_s + may_s, taken)
        heappush(self._ends, (now_s + runs_s, job))
