"""Reservations are as early as can be, and backfill moves none of them later."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from contracts.lifecycle import GangRecord
from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.book import keep_clear, list_in_the_way, move_aside
from solver.timeline.futures import Members, with_gang
from solver.timeline.reserve import Reservation, reserve
from solver.timeline.runs import list_runs
from tests.builders.timeline import World
from tests.oracles.brute_time import NEVER, Device, Taken

NOW = 100
LATEST = NOW + 64
SEEN: Counter[str] = Counter()


class Asked(NamedTuple):
    """A gang: so many pods with so many devices each, for so many seconds at most."""

    pods: int
    each: int
    lasts: int
    """0: nobody knows."""
    priority: int = 0

    @property
    def duration(self) -> str:
        """As its author writes it."""
        return f"{self.lasts}s" if self.lasts else ""


def gangs(lasts: st.SearchStrategy[int]) -> st.SearchStrategy[list[Asked]]:
    """Some gangs, small beside clusters of a dozen devices."""
    one = st.builds(
        Asked, st.integers(1, 3), st.integers(1, 3), lasts, st.integers(0, 1)
    )
    return st.lists(one, min_size=1, max_size=5)


KNOWN = st.integers(1, 8)
LASTS = st.one_of(KNOWN, KNOWN, st.just(0))


@given(st.integers(1, 3), st.integers(1, 4), gangs(LASTS), gangs(LASTS))
def test_starts_are_those_of_trying_every_second(
    nodes: int, gpus: int, run: list[Asked], wait: list[Asked]
) -> None:
    world, taken = _fill(nodes, gpus, run)
    kept: list[Reservation] = []
    for number, asked in enumerate(wait):
        record = _submit(world, f"waits-{number}", asked)
        found = _reserve(world, record, kept)
        lasts = asked.lasts or NEVER
        expected = taken.first_start(asked.pods, asked.each, lasts, NOW, LATEST)
        assert (None if found is None else found.start_s) == expected
        SEEN["later" if expected and expected > NOW else str(expected)] += 1
        if found is None or found.start_s is None:
            continue
        assert found.proven
        assert len(found.members) == asked.pods
        taken.take(_devices_of(found.members), found.start_s, found.start_s + lasts)
        kept.append(found)


@given(st.integers(1, 3), st.integers(1, 4), gangs(KNOWN), gangs(LASTS), gangs(LASTS))
def test_backfill_moves_no_start_later(
    nodes: int, gpus: int, run: list[Asked], wait: list[Asked], fill: list[Asked]
) -> None:
    """What starts now leaves every reservation before it a place at its time."""
    world, taken = _fill(nodes, gpus, run)
    book: tuple[Reservation, ...] = ()
    for number, asked in enumerate(wait):
        record = _submit(world, f"waits-{number}", asked)
        found = _reserve(world, record, book)
        if found is not None and found.start_s is not None:
            book = (*book, found)
    for number, asked in enumerate(fill):
        record = _submit(world, f"fills-{number}", asked)
        begun, book = _backfill(world, record, book)
        if begun:
            lasts = asked.lasts or NEVER
            taken.take(_devices_of(begun), NOW, NOW + lasts)
            world.snapshot = with_gang(world.snapshot, record, begun, at_s=NOW)
            _check(taken, book, record, NOW + lasts)


def _backfill(
    world: World, record: GangRecord, book: tuple[Reservation, ...]
) -> tuple[Members, tuple[Reservation, ...]]:
    """Start a gang that leaves the book as it is, or as early as it was."""
    asker, runs = world.asker(record), list_runs(world.snapshot, NOW)
    aside = list_in_the_way(record, book, NOW)
    fit = answer_all(asker.place(keep_clear(world.snapshot, aside), record), allocate)
    if fit or not aside:
        SEEN["clear" if fit and aside else "free"] += bool(fit)
        return fit.members, book
    fit = answer_all(asker.place(world.snapshot, record), allocate)
    if not fit:
        return (), book
    started = (record, fit.members)
    asking = move_aside(asker, world.snapshot, started, runs, book, aside)
    moved = answer_all(asking, allocate)
    SEEN["moved aside" if moved else "refused"] += 1
    return (fit.members, moved) if moved else ((), book)


def _check(
    taken: Taken, book: tuple[Reservation, ...], record: GangRecord, until: int
) -> None:
    """Require a place for each that is before the gang, all of them together."""
    later = Taken(taken.devices, {d: list(times) for d, times in taken.times.items()})
    for each in book:
        if each.record.submission and record.submission:
            kept = each.record.submission.gang.spec.priority
            if kept < record.submission.gang.spec.priority:
                continue
        assert each.start_s is not None
        end = NEVER * 2 if each.until_s is None else each.until_s
        later.take(_devices_of(each.members), each.start_s, end)


def _fill(nodes: int, gpus: int, run: list[Asked]) -> tuple[World, Taken]:
    world = World(nodes, gpus)
    names = [(f"n-{n}", f"gpu-{g}") for n in range(nodes) for g in range(gpus)]
    taken = Taken(names)
    for number, asked in enumerate(run):
        if not taken.holds(asked.pods, asked.each, NOW, NOW + 1):
            continue
        record = world.start(
            f"runs-{number}", asked.pods, asked.each, NOW, duration=asked.duration
        )
        assert record.placed is not None
        lasts = asked.lasts or NEVER
        taken.take(_devices_of(record.placed.members), NOW, NOW + lasts)
    return world, taken


def _submit(world: World, name: str, asked: Asked) -> GangRecord:
    return world.submit(
        name,
        asked.pods,
        asked.each,
        duration=asked.duration,
        priority=asked.priority,
    )


def _reserve(
    world: World, record: GangRecord, kept: list[Reservation] | tuple[Reservation, ...]
) -> Reservation | None:
    runs = list_runs(world.snapshot, NOW)
    asking = reserve(world.asker(record), world.snapshot, record, runs, kept, NOW)
    return answer_all(asking, allocate)


def _devices_of(members: Members) -> list[Device]:
    return [
        (result.pool, result.device)
        for pod in members
        for claim in pod.claims
        for result in claim.allocation.devices.results
    ]
