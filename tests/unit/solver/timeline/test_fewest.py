"""The fewest gangs to move, by counting."""

from __future__ import annotations

from contracts.ids import NodeName
from solver.timeline.cheapest import SolveLimits
from solver.timeline.counting import JointCounts, Limit, NodeRoom
from solver.timeline.fewest import FewestMoves, MovesModel

LIMITS = SolveLimits(work=1.0, seed=1)
A, B, C = map(NodeName, "abc")


def room(name: NodeName, left: int, *given: tuple[int, int]) -> NodeRoom:
    """Make a node for pods of one device, of which some gangs have some."""
    most = left + sum(amount for _, amount in given)
    return NodeRoom(name, ((0, most),), (Limit(((0, 1),), left, given),))


def model(wanted: int, left_on_c: int = 2) -> MovesModel:
    """Two gangs of one pod on a, one of two pods on b."""
    counts = JointCounts(
        pods=(((0, 1),), ((0, 1),), ((0, 2),)),
        kinds=1,
        nodes=(room(A, 0, (0, 1), (1, 1)), room(B, 0, (2, 2)), room(C, left_on_c)),
    )
    users = {A: frozenset({0, 1}), B: frozenset({2})}
    return MovesModel(counts, [1, 1, 2], users, wanted)


def test_the_node_with_the_fewest_gangs_is_freed() -> None:
    chosen, least, _ = model(1).choose(LIMITS)
    assert chosen == FewestMoves(frozenset({2}), frozenset({B}))
    assert least == 1


def test_what_is_forbidden_is_not_chosen_again() -> None:
    moves = model(1)
    moves.forbid(FewestMoves(frozenset({2}), frozenset({B})))
    chosen, least, _ = moves.choose(LIMITS)
    assert chosen is not None
    assert chosen.nodes == {A}
    assert least == 2
    moves.require(3)
    chosen, least, _ = moves.choose(LIMITS)
    assert chosen is not None
    assert len(chosen.moved) == 3


def test_no_moves_are_enough_without_room() -> None:
    assert model(2).choose(LIMITS)[:2] == (None, None)
    assert model(1, left_on_c=1).choose(LIMITS)[:2] == (None, None)
