"""Clocks that differ, as exactly as is known."""

from __future__ import annotations

import pytest

from moorings.doctor.check_clocks import check_bus_clock, check_cluster_clocks
from moorings.doctor.facts import Clock
from tests.builders.doctor import NOW_S, bus_facts, cluster_facts, worst


@pytest.mark.parametrize(
    ("clock", "level"),
    [
        (Clock(4.9, 0.0), None),
        (Clock(-5.5, 0.6), None),
        (Clock(5.1, 0.0), "warn"),
        (Clock(-6.0, 0.5), "warn"),
        (Clock(301.0, 0.5), "fail"),
        (Clock(301.0, 2.0), "warn"),
    ],
)
def test_only_what_is_certain_is_a_finding(clock: Clock, level: str | None) -> None:
    lines = worst(check_bus_clock(bus_facts(clock=clock)))
    assert [line.level for line in lines.values()] == ([level] if level else [])


def test_a_kubelet_that_is_ahead_of_the_api_server_is_named() -> None:
    """Whatever our own clock says; one that is behind may only be silent."""

    def lease(node: str, time: str) -> dict[str, object]:
        return {"metadata": {"name": node}, "spec": {"renewTime": time}}

    leases = (
        lease("fine", "2027-01-15T08:00:02.000000Z"),
        lease("ahead", "2027-01-15T08:00:09.000000Z"),
        lease("silent", "2027-01-15T07:00:00.000000Z"),
        lease("unreadable", "soon"),
    )
    facts = cluster_facts(clock=Clock(3.0, 0.5), node_leases=leases)
    lines = worst(check_cluster_clocks(facts, NOW_S + 3.0))
    assert "1 node" in lines["clock.nodes"].why
    assert "ahead" in lines["clock.nodes"].why
