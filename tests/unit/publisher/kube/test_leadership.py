from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import pytest
from msgspec import structs

from publisher.kube.leadership import (
    LeaseCandidate,
    ObservedLease,
    lease_of,
    note_observed,
    note_released,
    note_written,
    spec_of,
)

TICK_S = 0.25


class Server:
    """One Lease as the API server keeps it: a write needs the newest version."""

    def __init__(self) -> None:
        self.raw: dict[str, Any] | None = None
        self.version = 0

    def read(self) -> ObservedLease:
        """Give the Lease as it is."""
        return lease_of(self.raw)

    def write(self, spec: dict[str, Any], version: str) -> ObservedLease | None:
        """Store a Lease; None: a conflict."""
        if self.read().resource_version != version:
            return None
        self.version += 1
        metadata = {"uid": "lease", "resourceVersion": str(self.version)}
        self.raw = {"metadata": metadata, "spec": spec}
        return self.read()


class Process:
    """A candidate that speaks with the server slowly, and sometimes not at all."""

    def __init__(
        self,
        name: str,
        chance: random.Random,
        *,
        frozen: float,
        dead: Collection[str] = (),
    ) -> None:
        self.candidate = LeaseCandidate(identity=name)
        self._dead = dead
        self._chance = chance
        self._frozen = frozen
        self._busy_until_s = 0.0
        self._pending: ObservedLease | None = None
        self._began_s = 0.0

    def step(self, server: Server, now_s: float) -> None:
        """Go on at this time, unless something is awaited."""
        if now_s < self._busy_until_s:
            return
        if self._pending is not None:
            if self._chance.random() < 0.8:  # otherwise the answer was lost
                self.candidate = note_written(
                    self.candidate, self._pending, self._began_s, now_s
                )
            self._pending = None
        if self.candidate.left_s(now_s) == 0 or self._chance.random() < 0.5:
            self.candidate = note_observed(self.candidate, server.read(), now_s)
        seen = self.candidate.lease
        if seen is not None and self.candidate.may_take(now_s, self._dead.__contains__):
            spec = spec_of(self.candidate, "")
            self._began_s = now_s
            self._pending = server.write(spec, seen.resource_version)
        pauses = (0.25, 1.0, 3.0, 3.0, 3.0, 40.0 * self._frozen)
        self._busy_until_s = now_s + self._chance.choice(pauses)


@pytest.mark.parametrize("frozen", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_never_do_two_lead(seed: int, frozen: float) -> None:
    """Slow, lost and frozen: at any time one leads at most, and mostly one does."""
    chance = random.Random(seed)
    server = Server()
    processes = [Process(name, chance, frozen=frozen) for name in "abc"]
    led: set[str] = set()
    times_led = 0
    for tick in range(4_000):
        now_s = tick * TICK_S
        chance.shuffle(processes)
        for process in processes:
            process.step(server, now_s)
        leading = [p.candidate for p in processes if p.candidate.left_s(now_s) > 0]
        assert len(leading) <= 1
        led |= {candidate.identity for candidate in leading}
        times_led += len(leading)
    assert times_led > 400
    assert frozen == 0 or len(led) > 1


@pytest.mark.parametrize("seed", range(20))
def test_those_that_die_are_followed_at_once_and_never_do_two_lead(seed: int) -> None:
    """Each dies after 8 s at most, and its successor knows only that it is dead."""
    chance = random.Random(seed)
    server = Server()
    dead: set[str] = set()
    ages = [0.0, 0.0]
    processes = [Process(n, chance, frozen=0.0, dead=dead) for n in ("a-0", "b-0")]
    times_led = 0
    for tick in range(4_000):
        now_s = tick * TICK_S
        for i, process in enumerate(processes):
            if now_s > ages[i] + 8.0:
                name = process.candidate.identity
                dead.add(name)
                named = f"{name.partition('-')[0]}-{tick}"
                processes[i] = Process(named, chance, frozen=0.0, dead=dead)
                ages[i] = now_s
            processes[i].step(server, now_s)
        leading = [p for p in processes if p.candidate.left_s(now_s) > 0]
        assert len(leading) <= 1
        times_led += len(leading)
    assert times_led > 1_000


def test_a_dead_holder_is_followed_at_once() -> None:
    lease = ObservedLease(holder="a", duration_s=15.0, uid="l", resource_version="1")
    standby = note_observed(LeaseCandidate(identity="b"), lease, 100.0)
    assert standby.may_take(100.0, lambda holder: holder == "a")
    assert not standby.may_take(100.0, lambda holder: holder == "c")


def test_a_standby_waits_the_whole_duration_since_it_saw_a_change() -> None:
    """Not since the time that the Lease says, and from anew after each change."""
    lease = ObservedLease(holder="a", duration_s=15.0, uid="l", resource_version="1")
    standby = note_observed(LeaseCandidate(identity="b"), lease, 100.0)
    standby = note_observed(standby, lease, 110.0)
    assert not standby.may_take(114.9)
    assert standby.may_take(115.0)
    renewed = structs.replace(lease, resource_version="2")
    assert not note_observed(standby, renewed, 114.9).may_take(129.8)


def test_who_sees_the_lease_go_back_in_time_leads_no_more() -> None:
    """A cluster that was restored from a backup; what was read of it did not happen."""
    ours = ObservedLease(holder="a", duration_s=15.0, uid="l", resource_version="20")
    leading = note_written(LeaseCandidate(identity="a"), ours, 0.0, 0.5)
    assert leading.left_s(1.0) > 0
    older = structs.replace(ours, resource_version="9")
    behind = note_observed(leading, older, 1.0)
    assert behind.went_back
    assert behind.left_s(1.0) == 0
    assert not behind.may_take(100.0)
    # Nor after it was let go, or grew past what was seen.
    assert not note_released(behind).may_take(100.0)
    newer = structs.replace(ours, holder="", resource_version="21")
    assert not note_observed(behind, newer, 2.0).may_take(100.0)


def test_a_lease_that_was_deleted_did_not_go_back() -> None:
    lease = ObservedLease(holder="b", uid="l", resource_version="20")
    seen = note_observed(LeaseCandidate(identity="a"), lease, 0.0)
    gone = note_observed(seen, ObservedLease(), 1.0)
    assert not gone.went_back
    assert gone.may_take(1.0)
    assert note_observed(
        gone, structs.replace(lease, resource_version="8"), 2
    ).went_back


def test_a_released_lease_is_anybodys_at_once() -> None:
    """And taking it counts a transition only when somebody is followed."""
    free = ObservedLease(duration_s=15.0, transitions=4, uid="l", resource_version="9")
    candidate = note_observed(LeaseCandidate(identity="b"), free, 1.0)
    assert candidate.may_take(1.0)
    assert spec_of(candidate, "now")["leaseTransitions"] == 4
    taken = structs.replace(free, holder="a")
    candidate = note_observed(LeaseCandidate(identity="b"), taken, 1.0)
    assert spec_of(candidate, "now")["leaseTransitions"] == 5


def test_leading_counts_from_the_beginning_of_the_write() -> None:
    """A renewal that took long is worth less; who released leads no more."""
    free = note_observed(LeaseCandidate(identity="a"), ObservedLease(), 0.0)
    ours = ObservedLease(holder="a", duration_s=15.0, uid="l", resource_version="1")
    leader = note_written(free, ours, 1.0, 4.0)
    assert leader.left_s(4.0) == 7.0
    assert leader.left_s(11.0) == 0.0
    assert note_released(leader).left_s(4.0) == 0.0
    others = ObservedLease(holder="b", duration_s=15.0, uid="l", resource_version="2")
    assert note_observed(leader, others, 5.0).left_s(5.0) == 0.0
