"""What constraints across pods add to a model, counted before it is built."""

from __future__ import annotations

import pytest

from contracts.gang import Gang
from solver.allocate import allocate
from solver.decision import Status
from solver.engines.direct import search
from solver.engines.direct.compared import count_compared
from solver.engines.direct.part import place_part
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from tests.builders import DRIVER, device, gang, gang_constraint, member, pool
from tests.builders.problems import problem_of, snapshot_of

RULES = gang_constraint(f"{DRIVER}/rail"), gang_constraint(f"{DRIVER}/side")


def asked(*gangs: Gang) -> Problem:
    """Ask for gangs on 6 nodes, each with 4 devices that differ in rail and side."""
    content = [
        device(f"d{n}", attributes={"rail": n % 2, "side": n // 2}) for n in range(4)
    ]
    pools = {f"n{n}": [pool(*content, name=f"n{n}")] for n in range(6)}
    return problem_of(snapshot_of(pools, gangs))


def test_each_rule_counts_each_group_on_each_node() -> None:
    """Two rules about four devices on six nodes."""
    problem = asked(gang(member(count=2), constraints=RULES))
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    nodes = [view for kind in kinds for view in kind.nodes]
    assert count_compared(demand, nodes) == 48


def test_rules_inside_of_pods_count_nothing() -> None:
    """They are among the devices of one node."""
    problem = asked(gang(member(count=2)))
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    assert count_compared(demand, [v for kind in kinds for v in kind.nodes]) == 0


@pytest.mark.parametrize(("most", "builds"), [(0, False), (96, True)])
def test_many_terms_are_not_built_where_the_gang_is_constructed(
    monkeypatch: pytest.MonkeyPatch, most: int, *, builds: bool
) -> None:
    """All is in with its first choices, so nothing better can be had."""
    monkeypatch.setattr(search, "MOST_COMPARED", most)
    uids = [f"00000000-0000-4000-8000-{number:012}" for number in range(2)]
    wants = [
        gang(member(count=6), name=uid[-1], uid=uid, constraints=RULES) for uid in uids
    ]
    problem = asked(*wants)
    found = place_part(problem, problem.gangs)
    assert found.status is Status.OPTIMAL
    assert len(found.placements) == 2
    assert (found.effort.models > 0) == builds


def test_what_cannot_be_constructed_is_asked_of_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six devices are on one rail and side; seven pods are refused by counting."""
    monkeypatch.setattr(search, "MOST_COMPARED", 0)
    decision = allocate(asked(gang(member(count=7), constraints=RULES)))
    assert decision.gangs[0].verdict == "none"
