"""Times of stages do not overlap; a decision is counted as it is."""

from __future__ import annotations

import time

from prometheus_client import REGISTRY, Gauge

from solver.decision import Decision, Statistics, Status, TierValue
from solver.service.metrics import StageClock, observe_decision, set_gauge
from solver.stages import stage, told_to
from solver.tiers import Tier


def value(series: str, /, **labels: str) -> float:
    return REGISTRY.get_sample_value(series, labels) or 0.0


def test_a_stage_is_timed_without_those_that_lie_in_it() -> None:
    clock = StageClock()
    began = time.perf_counter()
    with told_to(clock), stage("model"):
        for _ in range(2):
            with stage("solve"):
                time.sleep(0.02)
    took = time.perf_counter() - began
    assert clock.seconds.keys() == {"model", "solve"}
    assert clock.seconds["solve"] >= 0.04
    assert sum(clock.seconds.values()) <= took


def test_gaps_are_shares_of_the_bound_and_no_bound_is_counted_apart() -> None:
    def gap(tier: str) -> tuple[float, float]:
        name = "moorings_solve_gap_ratio"
        return value(f"{name}_sum", tier=tier), value(f"{name}_count", tier=tier)

    observe_decision(
        Decision(
            problem="",
            status=Status.FEASIBLE,
            objective=(
                TierValue(tier=Tier.GANGS, value=75, bound=100),
                TierValue(tier=Tier.LEFTOVER, value=-4, bound=-3),
                TierValue(tier=Tier.NODES, value=0, bound=0),
                TierValue(tier=Tier.TOPOLOGY, value=1, bound=None),
            ),
            gangs=(),
            statistics=Statistics(),
        )
    )
    assert [gap("gangs"), gap("nodes"), gap("topology")] == [(0.25, 1), (0, 1), (0, 0)]
    assert round(gap("leftover")[0], 3) == 0.333
    assert value("moorings_solve_unbounded_total", tier="topology") == 1
    labels = {"engine": "none", "status": "Feasible"}
    assert value("moorings_solves_total", **labels) >= 1


def test_series_that_are_gone_are_not_shown_any_more() -> None:
    gauge = Gauge("tested_gauge", "Tested.", ("name",))
    set_gauge(gauge, {("a",): 1, ("b",): 2})
    set_gauge(gauge, {("b",): 3})
    assert REGISTRY.get_sample_value("tested_gauge", {"name": "a"}) is None
    assert value("tested_gauge", name="b") == 3
