"""The report over many worlds: a distribution, and the worst of them by name."""

from __future__ import annotations

import pytest

from benchmarks.solver.arrivals import Run, measure
from benchmarks.solver.many_worlds import Instance, decide_instance, summarize, to_row
from solver.cel.evaluator import SelectorEvaluator


def instance(seed: int, value: int, work: float = 1.0) -> Instance:
    """An answer to one world, 100 at best."""
    return Instance(
        family="plain",
        nodes=9,
        seed=seed,
        gangs=3,
        value=value,
        bound=100,
        engine="pattern",
        work=work,
        models=1,
        solve_s=0.1,
        solve_cpu_s=0.1,
        cpu_s=0.2,
    )


def test_the_worst_instance_is_named_by_its_seed() -> None:
    """The widest gap; of equal ones the most work."""
    row = summarize([instance(1, 100), instance(2, 90), instance(3, 90, work=2.0)])
    assert (row["worst seed"], row["its value"], row["its bound"]) == (3, 90, 100)


def test_gaps_and_work_are_distributions() -> None:
    """Median and worst, and how many were proven."""
    row = summarize([instance(1, 100, work=3.0), instance(2, 98), instance(3, 100)])
    assert (row["seeds"], row["proven"]) == (3, 2)
    assert row["gap % median"] == 0
    assert row["max gap %"] == pytest.approx(2)
    assert (row["work median"], row["max work"]) == (1, 3)


def test_a_world_is_decided_again_in_the_same_way() -> None:
    """All but the seconds."""
    with SelectorEvaluator() as evaluator:
        first, again = (
            to_row(decide_instance(evaluator, "plain", 10, 2)) for _ in range(2)
        )
    assert first["value"]
    for key in first.keys() - {"solve s", "solve cpu s", "cpu s"}:
        assert first[key] == again[key]


@pytest.mark.parametrize("batch", [1, 256])
def test_arrivals_last_as_long_as_their_decisions(batch: int) -> None:
    """Gangs that come while a batch is decided wait for it; few of them at the end."""
    with SelectorEvaluator() as evaluator:
        row = measure(evaluator, Run(nodes=10, seconds=0.5, batch=batch))
    assert int(row["gangs"]) >= 25
    assert int(row["answered"]) > 0
    assert int(row["tried"]) <= batch * int(row["batches"])
    assert 0 < float(row["p50 ms"]) <= float(row["p99 ms"]) <= float(row["max ms"])
