"""A what-if changes what it says, and nothing else; the answer is the solver's own."""

from __future__ import annotations

import pytest

from contracts.errors import DecodeError
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.names import UNHEALTHY
from moorings.console.what_if import WHAT_IF, WhatIf, change_problem
from moorings.errors import BadInputError
from solver.allocate import allocate
from solver.problem.problem import Problem
from solver.timeline.holdings import Holding
from tests import builders
from tests.builders.problems import problem_of, snapshot_of

NODES = {name: [builders.pool(*builders.devices(2), name=name)] for name in ("a", "b")}
DRIVER = DriverName(builders.DRIVER)
ALL = tuple(
    DeviceID(DRIVER, PoolName(node), DeviceName(f"gpu-{index}"))
    for node in NODES
    for index in (0, 1)
)
FIRST = builders.gang(builders.member(count=3), name="first", uid="u1", priority=1)
SECOND = builders.gang(builders.member(count=2), name="second", uid="u2")
BUSY = problem_of(snapshot_of(NODES, [FIRST, SECOND]))


def placed(problem: Problem, what_if: WhatIf, freed: Holding | None = None) -> set[str]:
    """Return the gangs that get devices when a problem is asked in another way."""
    decision = allocate(change_problem(problem, what_if, [freed] if freed else [], {}))
    return {gang.name for gang in decision.gangs if not gang.reasons}


def test_without_a_change_it_is_the_same_problem() -> None:
    assert change_problem(BUSY, WhatIf(), [], {}).hash == BUSY.hash
    assert placed(BUSY, WhatIf()) == {"first"}


def test_a_gang_that_is_left_out_makes_room() -> None:
    assert placed(BUSY, WhatIf(leave_out=("u1",))) == {"second"}


def test_fewer_pods_make_room() -> None:
    assert placed(BUSY, WhatIf(pods={"u1/worker": 2})) == {"first", "second"}


def test_the_order_follows_priorities() -> None:
    problem = problem_of(
        snapshot_of(
            {"a": NODES["a"]},
            [
                builders.gang(builders.member(count=2), name="x", uid="u1", priority=1),
                builders.gang(builders.member(count=2), name="y", uid="u2"),
            ],
        )
    )
    assert placed(problem, WhatIf()) == {"x"}
    assert placed(problem, WhatIf(priorities={"u2": 2})) == {"y"}


def test_added_nodes_are_like_one_with_nothing_of_it_held() -> None:
    problem = problem_of(snapshot_of(NODES, [SECOND], taken=ALL))
    assert placed(problem, WhatIf()) == set()
    assert placed(problem, WhatIf(add_nodes=1, like="a")) == {"second"}


def test_a_gang_may_do_without_a_term() -> None:
    picky = builders.member(count=2, node_selector={"zone": "nowhere"})
    gang = builders.gang(picky, name="second", uid="u2")
    problem = problem_of(snapshot_of(NODES, [gang]))
    assert placed(problem, WhatIf()) == set()
    without = ("u2/worker/nodeSelector/zone",)
    assert placed(problem, WhatIf(without=without)) == {"second"}


def test_what_a_gang_held_is_free_when_it_ends() -> None:
    problem = problem_of(snapshot_of(NODES, [SECOND], taken=ALL))
    freed = Holding(devices=frozenset(ALL[:2]))
    assert placed(problem, WhatIf(), freed) == {"second"}


def test_amounts_come_back_only_where_devices_do() -> None:
    """Else the gang came after the solve, and took nothing of it."""
    problem = problem_of(snapshot_of(NODES, [SECOND]))
    amounts = {NodeName("a"): {"cpu": 1000}}
    changed = change_problem(problem, WhatIf(), [Holding(amounts=amounts)], {})
    assert changed.hash == problem.hash


def test_sick_devices_and_away_nodes_may_be_well() -> None:
    taints = {device: builders.taint(UNHEALTHY) for device in ALL[:2]}
    problem = problem_of(snapshot_of(NODES, [SECOND], taints=taints, away=("b",)))
    assert placed(problem, WhatIf()) == set()
    assert placed(problem, WhatIf(heal=True)) == {"second"}


@pytest.mark.parametrize(
    "what_if",
    [
        WhatIf(leave_out=("nobody",)),
        WhatIf(priorities={"nobody": 1}),
        WhatIf(pods={"u1/nobody": 1}),
        WhatIf(without=("nobody/topology/0",)),
        WhatIf(without=("u1/topology/0",)),
        WhatIf(add_nodes=1, like="nowhere"),
        WhatIf(add_nodes=1),
    ],
)
def test_what_is_not_in_the_solve_is_refused_by_name(what_if: WhatIf) -> None:
    with pytest.raises(BadInputError, match="in this solve"):
        change_problem(BUSY, what_if, [], {})


@pytest.mark.parametrize(
    "body",
    [
        b'{"addNodes": 257, "like": "a"}',
        b'{"pods": {"u1/worker": 0}}',
        b'{"nodes": 1}',
        b"[]",
    ],
)
def test_what_cannot_be_is_refused(body: bytes) -> None:
    with pytest.raises(DecodeError):
        WHAT_IF.decode(body)
