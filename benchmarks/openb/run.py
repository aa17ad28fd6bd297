"""Plays one list of arrivals through one policy, and what it comes to.

The referee places what a policy proposes, so a wrong proposal ends the run. Where it
is measured a batch ends, so that no policy knows pods that have not come yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from benchmarks.openb.arrivals import arrived
from benchmarks.openb.fleet import Fleet, Placement
from benchmarks.openb.peers import Peer
from benchmarks.openb.trace import Trace, TracePod
from benchmarks.report import Row

Place = Callable[[Sequence[TracePod]], list[Placement | None]]
"""Decides a batch: a placement for each pod, or None."""
MARKS = (1.0, 1.3)
"""Where it is measured: GPUs asked for so far, as a share of the fleet's."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What one policy made of one list of arrivals."""

    unallocated: tuple[float, ...]
    """Per cent of the fleet's GPUs at each of `MARKS`."""
    refused: tuple[int, ...]
    """Pods, at each of `MARKS`."""
    pods: int
    batches: int
    seconds: float
    """Spent in the policy."""
    slowest_s: float
    """Of one batch."""


def one_by_one(peer: Peer, fleet: Fleet) -> Place:
    """Make a policy of batches from one that places a single pod."""
    return lambda batch: [peer.place(fleet, pod) for pod in batch]


def play(
    trace: Trace, pods: Sequence[TracePod], fleet: Fleet, place: Place, batch: int
) -> Outcome:
    """Place all pods in batches of so many.

    Raises:
        ValueError: the policy broke a rule.
    """
    placed: list[bool] = []
    seconds: list[float] = []
    for together in _batches(trace, pods, batch):
        started = time.perf_counter()
        proposed = place(together)
        seconds.append(time.perf_counter() - started)
        for pod, placement in zip(together, proposed, strict=True):
            if placement is not None:
                fleet.take(pod, placement)
            placed.append(placement is not None)
    return _outcome(trace, pods, placed, seconds)


def _batches(
    trace: Trace, pods: Sequence[TracePod], batch: int
) -> Iterator[Sequence[TracePod]]:
    marks = [arrived(pods, mark * trace.capacity_milli) for mark in MARKS]
    for start, end in pairwise((0, *marks)):
        for first in range(start, end, batch):
            yield pods[first : min(first + batch, end)]


def _outcome(
    trace: Trace,
    pods: Sequence[TracePod],
    placed: Sequence[bool],
    seconds: Sequence[float],
) -> Outcome:
    capacity = trace.capacity_milli
    unallocated, refused = [], []
    for mark in MARKS:
        until = arrived(pods, mark * capacity)
        came = list(zip(pods[:until], placed[:until], strict=True))
        used = sum(pod.asked_milli for pod, there in came if there)
        unallocated.append(100 * (capacity - used) / capacity)
        refused.append(sum(not there for _, there in came))
    return Outcome(
        unallocated=tuple(unallocated),
        refused=tuple(refused),
        pods=len(pods),
        batches=len(seconds),
        seconds=sum(seconds),
        slowest_s=max(seconds),
    )


def row(policy: str, batch: int, outcomes: Sequence[Outcome]) -> Row:
    """Sum up the outcomes of all seeds."""
    cells: dict[str, str | float | int] = {"policy": policy, "batch": batch}
    for index, mark in enumerate(MARKS):
        shares = [outcome.unallocated[index] for outcome in outcomes]
        cells[f"free % at {mark:.0%}"] = _mean(shares)
        cells[f"min-max at {mark:.0%}"] = f"{min(shares):.2f}-{max(shares):.2f}"
        refused = _mean(outcome.refused[index] for outcome in outcomes)
        cells[f"refused at {mark:.0%}"] = round(refused)
    pods = sum(outcome.pods for outcome in outcomes)
    batches = sum(outcome.batches for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    cells["ms per pod"] = seconds / pods * 1000
    cells["ms per batch"] = seconds / batches * 1000
    cells["slowest ms"] = max(outcome.slowest_s for outcome in outcomes) * 1000
    cells["seeds"] = len(outcomes)
    return cells


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
