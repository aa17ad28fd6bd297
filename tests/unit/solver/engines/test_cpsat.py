"""One outcome a status: nothing is read of a model that has no solution."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations

import pytest

from solver.engines import cp_model
from solver.engines.cpsat import Infeasible, Solved, Unknown, solve, total
from solver.errors import ModelInvalidError
from solver.stopping import stopped_by
from tests.builders.stopping import StopsAfter


def test_a_solution_says_its_value_and_that_it_is_the_best() -> None:
    """Where it is proven, the bound is the value."""
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")
    model.add(3 * x <= 20)
    model.maximize(total([(x, 2), (x, 3)]))
    outcome = solve(model, work_limit=1.0, seed=1, feasibility=False)
    assert isinstance(outcome, Solved)
    assert (outcome.value(x), outcome.value_reached) == (6, 30)
    assert outcome.optimal
    assert outcome.whole_bound == 30


def test_without_a_solution_it_is_proven_that_there_is_none() -> None:
    """Infeasible is an answer, not a failure."""
    model = cp_model.CpModel()
    x = model.new_int_var(0, 1, "x")
    model.add(x >= 1)
    model.add(x <= 0)
    assert isinstance(
        solve(model, work_limit=1.0, seed=1, feasibility=True), Infeasible
    )


def test_a_limit_that_comes_first_proves_nothing() -> None:
    """More pigeons than holes, and no time to find out."""
    outcome = solve(pigeons_in(12), work_limit=1e-3, seed=1, feasibility=False)
    assert isinstance(outcome, Unknown)


def pigeons_in(holes: int) -> cp_model.CpModel:
    """Ask for one more pigeon than there are holes, which takes long to refute."""
    model, pigeons = cp_model.CpModel(), holes + 1
    sits = [
        [model.new_bool_var(f"{p}/{h}") for h in range(holes)] for p in range(pigeons)
    ]
    for pigeon in sits:
        model.add_bool_or(pigeon)
    for hole in range(holes):
        for p in range(pigeons):
            for q in range(p):
                model.add_bool_or([~sits[p][hole], ~sits[q][hole]])
    return model


class Impatient(StopsAfter):
    """Stops what runs, from another thread, as soon as it can."""

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call it again and again until it has ended."""
        has_ended = threading.Event()

        def call() -> None:
            while not has_ended.wait(0.01):
                stop()

        thread = threading.Thread(target=call)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()


def test_a_model_that_is_being_solved_can_be_stopped() -> None:
    """By itself it would not end while anybody waits."""
    with stopped_by(Impatient(1)):
        outcome = solve(pigeons_in(40), work_limit=1e9, seed=1, feasibility=False)
    assert isinstance(outcome, Unknown)


def test_what_is_stopped_claims_no_more_than_it_knows() -> None:
    """Of many answers one is found soon, and that it is the best not for hours."""
    draw, model = random.Random(1), cp_model.CpModel()
    chosen = [model.new_bool_var(f"{number}") for number in range(300)]
    for one, other in combinations(chosen, 2):
        if draw.random() < 0.1:
            model.add_bool_or([~one, ~other])
    model.maximize(total([(literal, 1) for literal in chosen]))
    with stopped_by(Impatient(1)):
        outcome = solve(model, work_limit=1e9, seed=1, feasibility=False)
    assert not isinstance(outcome, Infeasible)
    if isinstance(outcome, Solved):
        assert not outcome.optimal
        assert outcome.value_reached <= outcome.whole_bound


def test_no_model_is_solved_once_the_search_is_to_end() -> None:
    """Not even one that is decided at once; and nothing is claimed of it."""
    model = cp_model.CpModel()
    model.add(model.new_int_var(0, 1, "x") >= 1)
    with stopped_by(StopsAfter(0)):
        outcome = solve(model, work_limit=1.0, seed=1, feasibility=True)
    assert outcome == Unknown(0.0, math.inf)


def test_a_model_that_cpsat_refuses_is_our_bug() -> None:
    """It is raised, and never taken for an answer."""
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**62, "x")
    model.add(sum((2**61) * x for _ in range(8)) >= 0)
    with pytest.raises(ModelInvalidError):
        solve(model, work_limit=1.0, seed=1, feasibility=False)


@pytest.mark.parametrize(("bound", "whole"), [(7.9, 7), (8.0, 8), (7.9999999, 8)])
def test_an_unproven_bound_is_rounded_to_what_whole_numbers_reach(
    bound: float, whole: int
) -> None:
    """Down, but for what is only a rounding error away from the next number."""
    found = Solved((), optimal=False, value_reached=3, bound=bound, work=0.0)
    assert found.whole_bound == whole
