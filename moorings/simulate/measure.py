"""What a simulated course of events amounts to: waits, utilisation, promises. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TypeVar

from msgspec import Struct

from contracts.counts import counted
from moorings.simulate.course import Stay

K = TypeVar("K", int, str)
LARGEST = 0.01
"""The share of jobs that counts as the largest."""
SIZES = (1, 2, 4, 8, 16, 64, 256, 1024)
"""Where classes of size end, in devices; the last one has no end."""
POINTS = 400
"""Of a timeline."""


class Waits(Struct, frozen=True, kw_only=True, rename="camel"):
    """How long some jobs waited, in seconds; of those that started."""

    of: str
    jobs: int
    started: int
    mean_s: float
    median_s: float
    p99_s: int
    most_s: int


class Promises(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of promised starts."""

    made: int
    kept: int
    """Started no later than first promised."""
    moved_later: int
    """Times that a promise was moved to a later start, each for a reason."""
    broken: int
    """Started later than promised without any reason; there should be none."""
    open: int
    """Neither started nor late when the simulation ended."""


class Point(Struct, frozen=True, kw_only=True, rename="camel"):
    """A moment: devices in use, and devices that waiting jobs want."""

    at_s: int
    used: int
    wanted: int


class Report(Struct, frozen=True, kw_only=True, rename="camel"):
    """One policy on one trace."""

    policy: str
    jobs: int
    started: int
    left_out: tuple[str, ...] = ()
    """Jobs that could never fit, by name."""
    until_s: int
    """When the last thing happened."""
    utilisation: float
    """Of all devices, from the first submission to the last."""
    waits: tuple[Waits, ...]
    """Of all, of the largest, by size, by queue."""
    promises: Promises
    timeline: tuple[Point, ...]


def measure(
    policy: str,
    stays: Sequence[Stay],
    *,
    devices: int,
    now_s: int,
    left_out: Sequence[str] = (),
) -> Report:
    """Sum up a course that went on until `now_s`; `devices`: of the whole fleet."""
    arrived = [stay for stay in stays if stay.job.at_s <= now_s]
    first_s = min((stay.job.at_s for stay in stays), default=0)
    last_s = min(max((stay.job.at_s for stay in stays), default=0), now_s)
    used = sum(_count_use(stay, first_s, last_s) for stay in arrived)
    window = devices * (last_s - first_s)
    return Report(
        policy=policy,
        jobs=len(stays),
        started=sum(stay.started_s is not None for stay in arrived),
        left_out=tuple(left_out),
        until_s=now_s,
        utilisation=round(used / window, 4) if window else 0.0,
        waits=tuple(_list_waits(arrived)),
        promises=_count_promises(arrived, now_s),
        timeline=_draw_timeline(arrived, now_s),
    )


def list_largest(stays: Sequence[Stay]) -> list[Stay]:
    """List the largest 1 % of jobs by devices; of equals those that came first."""
    count = -(-len(stays) * LARGEST // 1)
    ordered = sorted(stays, key=lambda stay: (-stay.job.devices, stay.job.at_s))
    return ordered[: int(count)]


def _count_use(stay: Stay, first_s: int, last_s: int) -> int:
    if stay.started_s is None:
        return 0
    ends_s = stay.started_s + stay.job.runs_s
    shared = min(ends_s, last_s) - max(stay.started_s, first_s)
    return stay.job.devices * max(shared, 0)


def _list_waits(stays: Sequence[Stay]) -> Iterable[Waits]:
    yield _measure_waits("all", stays)
    yield _measure_waits("largest 1 %", list_largest(stays))
    by_size = _group(stays, lambda stay: _number_size(stay.job.devices))
    for number, of in sorted(by_size.items()):
        yield _measure_waits(_name_size(number), of)
    by_queue = _group(stays, lambda stay: stay.job.queue)
    for queue, of in sorted(by_queue.items()):
        yield _measure_waits(f"queue {queue}", of)


def _group(stays: Iterable[Stay], key: Callable[[Stay], K]) -> dict[K, list[Stay]]:
    groups: dict[K, list[Stay]] = {}
    for stay in stays:
        groups.setdefault(key(stay), []).append(stay)
    return groups


def _number_size(devices: int) -> int:
    return sum(devices > size for size in SIZES)


def _name_size(number: int) -> str:
    if number == len(SIZES):
        return f"over {counted(SIZES[-1], 'device')}"
    first = SIZES[number - 1] + 1 if number else 1
    most = counted(SIZES[number], "device")
    return most if first == SIZES[number] else f"{first} to {most}"


def _measure_waits(of: str, stays: Sequence[Stay]) -> Waits:
    waits = sorted(
        stay.started_s - stay.job.at_s for stay in stays if stay.started_s is not None
    )
    count = len(waits)
    return Waits(
        of=of,
        jobs=len(stays),
        started=count,
        mean_s=round(sum(waits) / count, 1) if count else 0.0,
        median_s=float(median(waits)) if count else 0.0,
        p99_s=waits[min(count - 1, count * 99 // 100)] if count else 0,
        most_s=waits[-1] if count else 0,
    )


def _count_promises(stays: Sequence[Stay], now_s: int) -> Promises:
    made = [(s, s.promised_s) for s in stays if s.promised_s is not None]
    late = [
        stay
        for stay, promised_s in made
        if stay.started_s is not None and stay.started_s > promised_s
    ]
    waiting = [promised_s for stay, promised_s in made if stay.started_s is None]
    return Promises(
        made=len(made),
        kept=len(made) - len(waiting) - len(late),
        moved_later=sum(stay.moved_later for stay in stays),
        broken=sum(stay.moved_later == 0 for stay in late),
        open=sum(promised_s >= now_s for promised_s in waiting),
    )


def _draw_timeline(stays: Sequence[Stay], now_s: int) -> tuple[Point, ...]:
    changes: dict[int, tuple[int, int]] = {}

    def add(at_s: int, used: int, wanted: int) -> None:
        before = changes.get(at_s, (0, 0))
        changes[at_s] = (before[0] + used, before[1] + wanted)

    for stay in stays:
        devices = stay.job.devices
        add(stay.job.at_s, 0, devices)
        if stay.started_s is not None:
            add(stay.started_s, devices, -devices)
            add(stay.started_s + stay.job.runs_s, -devices, 0)
    times = sorted(at_s for at_s in changes if at_s <= now_s)
    points, used, wanted, next_ = list[Point](), 0, 0, 0
    for number in range(POINTS + 1):
        at_s = now_s * number // POINTS
        while next_ < len(times) and times[next_] <= at_s:
            used += changes[times[next_]][0]
            wanted += changes[times[next_]][1]
            next_ += 1
        points.append(Point(at_s=at_s, used=used, wanted=wanted))
    return tuple(points)
