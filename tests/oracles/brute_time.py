"""When gangs can start, by trying every second: devices and the times they are taken.

For gangs of equal pods that ask for a number of equal devices of one node. Shares
nothing with the search that it judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

NEVER = 10**9
Device = tuple[str, str]
"""Node and name."""


@dataclass
class Taken:
    """When each device is taken: from a second on, up to another."""

    devices: list[Device]
    times: dict[Device, list[tuple[int, int]]] = field(default_factory=dict)

    def take(self, devices: Iterable[Device], begin: int, end: int) -> None:
        """Take devices for a time.

        Raises:
            AssertionError: one of them is taken then.
        """
        for device in devices:
            assert self.is_free(device, begin, end), (device, begin, end)
            self.times.setdefault(device, []).append((begin, end))

    def is_free(self, device: Device, begin: int, end: int) -> bool:
        """True if nobody has a device at any second of a time."""
        taken = self.times.get(device, [])
        return all(end <= first or last <= begin for first, last in taken)

    def holds(self, pods: int, each: int, begin: int, end: int) -> bool:
        """True if so many pods fit for a time."""
        free = Counter(d[0] for d in self.devices if self.is_free(d, begin, end))
        return sum(count // each for count in free.values()) >= pods

    def first_start(
        self, pods: int, each: int, lasts: int, now: int, latest: int
    ) -> int | None:
        """Try every second from now on; None: none of them will do."""
        for begin in range(now, latest + 1):
            if self.holds(pods, each, begin, begin + lasts):
                return begin
        return None
