"""Reservations are as early as can be, and backfill moves none of them later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from contracts.lifecycle import GangRecord
from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.book import keep_clear, list_in_the_way, make_way
from solver.timeline.futures import Members, with_gang
from solver.timeline.reserve import Reservation, Scene, reserve
from solver.timeline.timetable import Timetable
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
    # Of a higher priority they would need to leave nothing alone.
    equals = (asked._replace(priority=0) for asked in fill)
    for number, asked in enumerate(equals):
        record = _submit(world, f"fills-{number}", asked)
        begun, book = _backfill(world, record, book)
        if begun:
            lasts = asked.lasts or NEVER
            taken.take(_devices_of(begun), NOW, NOW + lasts)
            world.snapshot = with_gang(world.snapshot, record, begun, at_s=NOW)
            _check(taken, book)


def _backfill(
    world: World, record: GangRecord, book: tuple[Reservation, ...]
) -> tuple[Members, tuple[Reservation, ...]]:
    """Start a gang that leaves the book as it is, or as early as it was."""
    place = world.asker(record).place
    aside = list_in_the_way(record, book, NOW)
    fit = answer_all(place(keep_clear(world.snapshot, aside), record), allocate)
    if fit or not aside:
        SEEN["clear" if fit and aside else "free"] += bool(fit)
        return fit.members, book
    asking = make_way(world.asker, _look(world, book), record)
    moved = answer_all(asking, allocate)
    SEEN["moved aside" if moved else "refused"] += 1
    if moved is None:
        return (), book
    aside = list_in_the_way(record, moved, NOW)
    fit = answer_all(place(keep_clear(world.snapshot, aside), record), allocate)
    assert fit
    return fit.members, moved


def _check(taken: Taken, book: tuple[Reservation, ...]) -> None:
    """Require a place for each, all of them together."""
    later = Taken(taken.devices, {d: list(times) for d, times in taken.times.items()})
    for each in book:
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
    world: World, record: GangRecord, kept: Sequence[Reservation]
) -> Reservation | None:
    asking = reserve(world.asker(record), _look(world, kept), record)
    return answer_all(asking, allocate)


def _look(world: World, kept: Sequence[Reservation]) -> Scene:
    return Scene(table=Timetable(world.snapshot, NOW), kept=kept)


def _devices_of(members: Members) -> list[Device]:
    return [
        (result.pool, result.device)
        for pod in members
        for claim in pod.claims
        for result in claim.allocation.devices.results
    ]
