"""Who is made to go: nobody without need, nobody whom the queue protects, and once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from contracts.lifecycle import GangRecord
from solver.allocate import allocate
from solver.queueing.gang_queue import urgency_of
from solver.timeline.asking import answer_all
from solver.timeline.futures import without_gangs
from solver.timeline.keeper import Outlook
from solver.timeline.preempting import PreemptionPlan, believe, make_plan
from solver.timeline.reservations import Reservations
from tests.draw.preemption_worlds import (
    NOW_S,
    PreemptionWorld,
    draw_full,
    draw_world,
    read_gang,
    submit,
    submit_to,
)
from tests.lab.soak import sized
from tests.oracles.plain_preemption import find_fault, fits_without, is_helpless

SLICES = 4
STEPS = 10
QUIET = 4
"""Steps in which nobody comes any more."""


def look_at(
    drawn: PreemptionWorld, reservations: Reservations, now_s: int = NOW_S
) -> Outlook:
    return Outlook(
        snapshot=reservations.preempting.see(drawn.world.snapshot),
        now_s=now_s,
        asker_of=drawn.world.asker,
        patience_s=0,
    )


@pytest.mark.parametrize("part", range(SLICES))
def test_plans_are_whole_lower_allowed_enough_and_minimal(part: int) -> None:
    seen = Counter[str]()
    for seed in range(part, sized(160, 8_000), SLICES):
        drawn, draw = draw_full(seed), random.Random(-seed)
        record = submit(draw, drawn, "waits", priority=draw.choice((10, 25, 40)))
        scene, waits = drawn.scene(), read_gang(record)
        look = look_at(drawn, Reservations())
        plan = answer_all(make_plan(look, (), record), allocate)
        if plan is None:
            assert fits_without(scene, waits, ()) or is_helpless(scene, waits), seed
            seen["none"] += 1
            continue
        victims = [read_gang(each.record) for each in plan.victims]
        assert find_fault(scene, waits, victims) == "", seed
        seen["other" if any(v.queue != waits.queue for v in victims) else "own"] += 1
    assert all(seen[kind] for kind in ("none", "own", "other")), seen


@pytest.mark.parametrize("part", range(SLICES))
def test_over_time_nobody_goes_for_a_lower_one_and_no_pair_for_each_other(
    part: int,
) -> None:
    """Gangs come, are decided in order, go and come back; then there is rest."""
    went = 0
    for seed in range(part, sized(32, 1_000), SLICES):
        course = Course(random.Random(seed))
        for step in range(STEPS):
            for _ in range(2 if step < STEPS - QUIET else 0):
                course.submit()
            course.step()
        went += len(course.pairs)
        for victim, winner in course.pairs:
            assert course.priorities[victim] < course.priorities[winner], seed
            assert (winner, victim) not in course.pairs, seed
        assert max(course.pairs.values(), default=0) <= 1, (seed, course.pairs)
        assert not course.last_plans, seed
    assert went


class Course:
    """Gangs in virtual time, and who went for whom."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._drawn = draw, draw_world(draw)
        self._reservations = Reservations()
        self._now_s, self._came = NOW_S, 0
        self.priorities: dict[str, int] = {}
        self.pairs = Counter[tuple[str, str]]()
        """(who went, for whom), by the names that they keep."""
        self.last_plans: tuple[PreemptionPlan, ...] = ()

    def submit(self) -> None:
        """Let a gang come."""
        self._came += 1
        name, priority = f"g{self._came}", self._draw.randint(0, 3) * 10
        submit(self._draw, self._drawn, name, priority)
        self.priorities[name] = priority

    def step(self) -> None:
        """Decide who waits, look at what is kept, and let those go who must."""
        world = self._drawn.world
        self._now_s += 5
        for record in sorted(world.snapshot.waiting.values(), key=urgency_of):
            state = self._reservations.clear(world.snapshot, [record], self._now_s)
            world.decide(record, state, self._now_s)
        look = look_at(self._drawn, self._reservations, self._now_s)
        answer_all(self._reservations.look(look), allocate)
        self.last_plans = self._reservations.preempting.plans
        for plan in self.last_plans:
            world.snapshot = believe(world.snapshot, plan.mark(world.snapshot))
            for victim in plan.victims:
                self._let_go(victim.record, plan)

    def _let_go(self, victim: GangRecord, plan: PreemptionPlan) -> None:
        world, was = self._drawn.world, read_gang(victim)
        winner = plan.reservation.record.name
        self.pairs[base(victim.name), base(winner)] += 1
        world.snapshot = without_gangs(world.snapshot, [world[victim.name]])
        submit_to(
            world, was.queue, f"{victim.name}.", (was.pods, was.gpus), was.priority
        )


def base(name: str) -> str:
    return name.rstrip(".")
