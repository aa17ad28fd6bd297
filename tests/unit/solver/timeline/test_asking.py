"""Whether a gang fits, asked of any cluster."""

from __future__ import annotations

from solver.allocate import allocate
from solver.decision import Decision
from solver.problem.problem import Problem
from solver.tiers import Tier
from solver.timeline.asking import answer_all
from tests.builders.timeline import World


def test_a_question_is_about_one_gang_and_its_answer_names_it() -> None:
    world = World(nodes=2)
    world.submit("first", priority=1)
    second = world.submit("second", pods=2)
    asked: list[Problem] = []

    def decide(problem: Problem) -> Decision:
        asked.append(problem)
        return allocate(problem)

    asker = world.asker(second)
    fit = answer_all(asker.place(world.snapshot, second), decide)
    found = answer_all(asker.find(world.snapshot, second), decide)

    assert [gang.name for problem in asked for gang in problem.gangs] == ["second"] * 2
    assert (fit.problem, found.problem) == (asked[0].hash, asked[1].hash)
    assert asked[1].parameters.last_tier is Tier.GANGS
    assert len(fit.members) == len(found.members) == 2


def test_a_no_is_known_to_be_one() -> None:
    world = World(nodes=1)
    large = world.submit("large", pods=2)

    fit = answer_all(world.asker(large).find(world.snapshot, large), allocate)
    assert not fit
    assert fit.proven
