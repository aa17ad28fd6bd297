"""Gangs that are over, and when they are forgotten.

The last few thousand keep their records, for messages that come late. An older one is
forgotten; that is harmless: SUBMIT is write-once and keeps every submission, so the
server refuses the uid for ever, and after a restart all streams are read again. A
record without a submission is never in this list: its submission may still come.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.ids import GangUID
from solver.snapshot.maps import FrozenMap

KEPT_GANGS = 4096


class Over(Struct, frozen=True, kw_only=True):
    """Which gangs are over, in the order in which they ended."""

    gangs: FrozenMap[str, GangUID] = FrozenMap()
    """By running number."""
    first: int = 0
    next: int = 0

    def with_gang(self, uid: GangUID) -> tuple[Over, GangUID | None]:
        """Note that a gang is over; gives whom to forget for it, too."""
        gangs = self.gangs.with_item(str(self.next), uid)
        if len(gangs) <= KEPT_GANGS:
            return Over(gangs=gangs, first=self.first, next=self.next + 1), None
        oldest = str(self.first)
        forgotten = gangs.get(oldest)
        gangs = gangs.without(oldest)
        return Over(gangs=gangs, first=self.first + 1, next=self.next + 1), forgotten
