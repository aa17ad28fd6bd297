"""Places that are weighed in the order of bounds are those of weighing every node."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from solver.cel.evaluator import SelectorEvaluator
from solver.engines.choose import PATTERN, choose_engine
from solver.engines.greedy.search import GreedySearch
from solver.engines.greedy.states import DeviceStates
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.problem.problem import ExpectedPart
from tests.draw.crowds import world
from tests.draw.drawn import drawn
from tests.lab.soak import sized

PROBLEMS = sized(60, 4_000)
AT_ONCE = PROBLEMS // 4
STATES = 60
"""States of a Problem whose rooms are compared."""
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


def draw_batch(
    seed: int, draw: random.Random, evaluator: SelectorEvaluator
) -> tuple[Demand, tuple[NodeKind, ...]] | None:
    """Draw nodes and gangs, and expect pods like some of theirs.

    None: they would not be placed one after the other.
    """
    if seed % 2:
        problem, _ = drawn(seed, evaluator, nodes=3, gangs=6)
    else:
        problem = world(seed, nodes=(3, 12), gangs=(4, 12)).problem
    gangs = [gang for gang in problem.gangs if not gang.refused]
    members = [member for gang in gangs for member in gang.members]
    expected = problem.expected or [
        ExpectedPart(
            member=member,
            weight=draw.choice((1, 3)),
            size=draw.choice((250, 1000, 2000)),
        )
        for member in draw.sample(members, min(3, len(members)))
    ]
    demand = Demand(gangs, expected=tuple(expected))
    kinds = find_node_kinds(problem, demand.query)
    if not (demand.gangs and kinds):
        return None
    if choose_engine(demand, kinds).engine != PATTERN:
        return None
    return demand, kinds


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_the_places_are_the_same(first: int, evaluator: SelectorEvaluator) -> None:
    """In any order of the gangs; fewer states are met on the way."""
    for seed in range(first, first + AT_ONCE):
        draw = random.Random(f"greedy {seed}")
        batch = draw_batch(seed, draw, evaluator)
        if batch is None:
            continue
        order = list(range(len(batch[0].gangs)))
        draw.shuffle(order)
        few, every = GreedySearch(*batch), GreedySearch(*batch, weighs_all=True)
        try:
            expected = every.run(order)
        except PatternLimitError:
            continue
        assert few.run(order) == expected, seed
        SEEN["placed"] += len(expected)
        SEEN["left out"] += len(order) - len(expected)
        SEEN["edges of few"] += len(few.to_graph().edges)
        SEEN["edges of all"] += len(every.to_graph().edges)
        # What was remembered of one order changes nothing about the next one.
        few.run(order[::-1])
        assert few.run(order) == expected, seed


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_no_pod_leaves_more_room_than_is_bounded(
    first: int, evaluator: SelectorEvaluator
) -> None:
    """Wherever its devices are taken; where the bound says no, there is no way."""
    for seed in range(first, first + AT_ONCE):
        draw = random.Random(f"rooms {seed}")
        batch = draw_batch(seed, draw, evaluator)
        if batch is None:
            continue
        states = DeviceStates(batch[0])
        met = list(dict.fromkeys(states.start(kind.shape)[0] for kind in batch[1]))
        for state in met:
            for member in range(len(batch[0].member_kinds)):
                try:
                    targets = [target for _, target in states.options(member, state)]
                except PatternLimitError:
                    continue
                bound = states.bound_room(member, state)
                SEEN["no place"] += bound is None
                assert bound is not None or not targets, seed
                assert bound is None or (states.room[targets] <= bound).all(), seed
                SEEN["less"] += bound is not None and bool(
                    (bound < states.room[state]).any()
                )
                if len(met) < STATES:
                    met += [target for target in targets if target not in met]


def test_the_bounds_say_something() -> None:
    """The laws above are about pods with places and without."""
    assert SEEN["placed"] > PROBLEMS, SEEN
    assert SEEN["left out"] > PROBLEMS // 2, SEEN
    assert SEEN["edges of few"] < 0.9 * SEEN["edges of all"], SEEN
    assert SEEN["less"] > 10 * PROBLEMS, SEEN
    assert SEEN["no place"] > PROBLEMS, SEEN
