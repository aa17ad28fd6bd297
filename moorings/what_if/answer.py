"""What becomes of each gang as things are, and as they would be, side by side. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from contracts.counts import counted
from solver.timeline.futures import Members, list_results

ALLOCATED, RUNS, ENDED, WAITS, REJECTED = (
    "allocated",
    "runs",
    "ended",
    "waits",
    "rejected",
)


class GangFate(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What becomes of one gang."""

    verdict: str
    """`allocated` (now), `runs` (as before), `ended`, `waits`, `rejected`, or of files
    what `moorings plan` says."""
    pods: Mapping[str, int] = {}
    """By node."""
    devices: tuple[str, ...] = ()
    """Names of the devices that it gets or has, `driver/pool/device`, sorted."""
    reasons: tuple[str, ...] = ()
    """Why it waits, or was rejected."""
    starts_by: str = ""
    """When it starts at the latest, RFC 3339, if devices are kept for it; `unknown`:
    once gangs have ended of which nobody knows when."""
    proven: bool = False
    """True if it can start no earlier, by what is known."""

    def __str__(self) -> str:
        if self.pods:
            nodes = counted(len(self.pods), "node")
            return f"{self.verdict} on {nodes}"
        if self.starts_by:
            return f"{self.verdict}, starts by {self.starts_by}"
        return self.verdict


class GangDifference(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One gang, as things are and as they would be."""

    name: str
    before: GangFate | None = None
    """None: it is not there."""
    after: GangFate | None = None

    @property
    def differs(self) -> bool:
        """True if something becomes of it that would not otherwise."""
        return self.before != self.after


class Forecasts(Struct, frozen=True, kw_only=True):
    """Hashes of the decisions that are made, in their order.

    Of files, of the Problem.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class WhatIfAnswer(Struct, frozen=True, kw_only=True):
    """All gangs side by side."""

    gangs: tuple[GangDifference, ...]
    decisions: Forecasts

    @property
    def is_yes(self) -> bool:
        """True if every gang whose fate differs then has devices, or was to end."""
        good = {ALLOCATED, RUNS, ENDED}
        after = [each.after for each in self.gangs if each.differs]
        return all(each is None or each.verdict in good for each in after)


def compare_fates(
    before: Mapping[str, GangFate],
    after: Mapping[str, GangFate],
    decisions: Forecasts,
) -> WhatIfAnswer:
    """Put the gangs of two forecasts side by side, by name."""
    names = [*before, *(name for name in after if name not in before)]
    gangs = (
        GangDifference(name=n, before=before.get(n), after=after.get(n)) for n in names
    )
    return WhatIfAnswer(gangs=tuple(gangs), decisions=decisions)


def name_devices(members: Members) -> tuple[str, ...]:
    """Name the devices of some pods, `driver/pool/device`, sorted."""
    return tuple(sorted(str(each.device_id) for each in list_results(members)))


def count_pods(nodes: Iterable[str]) -> dict[str, int]:
    """Count pods by their nodes, in the order of names."""
    return dict(sorted(Counter(nodes).items()))
