"""Diving: pods that fractions of nodes take get whole ones, a few at a time."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns import diving
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.diving import Diving, dive
from solver.engines.pattern.columns.master_data import PatternUse
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.rounding import RelaxedSolution
from tests.builders import gang, member, member_claim, request
from tests.builders.patterns import nodes_of_sizes, pattern_model

UID = "00000000-0000-4000-8000-{:012}"
PODS = 4
"""Of each gang: no node takes more."""
NOTHING = RelaxedSolution((), (), ())


def model_of(*devices: int, sizes: tuple[int, ...]) -> PatternModel:
    """Ask for gangs whose pods have so many devices each."""
    return pattern_model(
        nodes_of_sizes(*sizes),
        *(
            gang(
                member(member_claim(request(count=count)), count=PODS),
                name=f"g{count}",
                uid=UID.format(count),
            )
            for count in devices
        ),
    )


def count_placed(uses: tuple[PatternUse, ...], members: int) -> list[int]:
    """Count the places by member kind."""
    placed = [0] * members
    for _, pattern, nodes in uses:
        for member_kind, pods in pattern.counts:
            placed[member_kind] += pods * nodes
    return placed


def test_prices_find_patterns_that_no_pool_has() -> None:
    """Of 4 + 4 devices all are used: 3 + 1 on both nodes."""
    model = model_of(3, 1, sizes=(4, 4))
    uses = dive(model, ColumnPool(), (2, 2), NOTHING)
    assert count_placed(uses, 2) == [2, 2]
    assert sum(nodes for _, _, nodes in uses) <= 2


def test_no_more_is_placed_than_nodes_take_or_pods_are_wanted() -> None:
    """Six devices take three pairs, however many are wanted."""
    model = model_of(2, sizes=(3, 3, 2))
    for wanted, placed in ((9, 3), (2, 2)):
        uses = dive(model, ColumnPool(), (wanted,), NOTHING)
        assert count_placed(uses, 1) == [placed]


def test_what_is_whole_is_kept() -> None:
    """Only the nodes that were split are settled anew."""
    model = model_of(1, sizes=(2, 2))
    first = dive(model, ColumnPool(), (2,), NOTHING)
    assert [nodes for _, _, nodes in first] == [1]
    both = dive(model, ColumnPool(), (4,), RelaxedSolution(first, (), ()))
    assert both[0] == first[0]
    assert count_placed(both, 1) == [4]


def test_all_is_settled_anew_where_that_is_better() -> None:
    """A pod of one device was on the node that the large one needs."""
    model = model_of(4, 1, sizes=(4, 1))
    small = dive(model, ColumnPool(), (0, 1), NOTHING)
    sizes = [model.graph.states[c.state].groups[0].size for c in model.graph.classes]
    large = sizes.index(4)
    wrong = RelaxedSolution(((large, small[0][1], 1),), (), ())
    assert count_placed(dive(model, ColumnPool(), (1, 1), wrong), 2) == [1, 1]


def test_known_patterns_are_enough_where_prices_may_not_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And without any there are no places."""
    model = model_of(2, sizes=(2,))
    known = dive(model, ColumnPool(), (1,), NOTHING)
    monkeypatch.setattr(diving, "PRICED_STEPS", 0)
    assert dive(model, ColumnPool(), (1,), NOTHING) == ()
    pool = ColumnPool()
    pool.add_uses(known)
    assert dive(model, pool, (1,), NOTHING) == known


def test_a_class_without_nodes_is_left_out() -> None:
    """Its patterns are no columns."""
    model = model_of(1, sizes=(1,))
    assert Diving(model, (1,), {0: 0}, {}).run() == []
