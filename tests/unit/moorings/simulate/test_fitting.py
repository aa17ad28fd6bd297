"""Jobs that no empty fleet could hold."""

from __future__ import annotations

from moorings.deciding import Judged
from moorings.simulate.fitting import find_hopeless
from tests.builders.simulated import evaluate_rows, make_cluster, make_job


def test_they_are_named() -> None:
    jobs = [make_job("a", 16), make_job("b", 17), make_job("c", 15), make_job("d", 17)]
    assert find_hopeless(make_cluster(2), jobs, Judged(evaluate_rows)) == ("b", "d")
