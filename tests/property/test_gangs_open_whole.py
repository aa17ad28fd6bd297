"""Gangs are opened whole or not at all, whatever happens in which order.

The laws stand in tests/simulation/laws.py; a game is any list of moves
(tests/simulation/game.py).
"""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.simulation.game import Game
from tests.simulation.setting import Setting, Slot

EXAMPLES = 10_000 if os.environ.get("MOORINGS_SOAK") == "1" else 200
Move = tuple[str, int, int]

POD_MOVES = (
    "create",
    "create",
    "create",
    "generate",
    "generate",
    "delete",
    "finish",
    "terminate",
)
TROUBLE = (
    "clear",
    "discard",
    "allocate",
    "restore",
    "cancel",
    "reject",
    "refuse",
    "unplug",
)
GANG_MOVES = ("gang_object", "submit_late")
PLAYERS = ("solve", "control", "schedule", "restart")
WHOLE = ("crowd", "advance", "advance", "replace", "hear", "hear", "act", "act")
PIECES = ("hear_api", "hear_bus", "hear", "plan", "plan", "carry_out", "carry_out")


@st.composite
def worlds(draw: st.DrawFn, *, rival: bool = False) -> Setting:
    """Draw a few pods: of gangs or alone, with claims of their own or shared ones."""
    slots = []
    for number in range(draw(st.integers(1, 5))):
        gang = draw(st.sampled_from(["", "red", "red", "red", "blue"]))
        own = draw(st.sampled_from([1, 1, 1, 2, 0]))
        shared = draw(st.sampled_from(["", "", "", "one", "two"]))
        theirs = draw(st.sampled_from([False, False, False, True]))
        slots.append(Slot(f"{gang or 'lone'}-{number}", gang, own, theirs, shared))
    nodes, devices = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return Setting(tuple(slots), nodes, devices, rival)


def moves(*names: str) -> SearchStrategy[list[Move]]:
    """Draw what happens."""
    move = st.tuples(st.sampled_from(names), st.integers(0, 11), st.integers(0, 11))
    return st.lists(move, min_size=15, max_size=60)


def play(setting: Setting, drawn: list[Move]) -> None:
    game = Game(setting)
    game.play(drawn)
    game.settle()
    game.laws.check_end(game.leader)
    game.tear_down()
    game.laws.check_nothing_left(game.leader)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(), moves(*POD_MOVES, *TROUBLE, *PLAYERS, *WHOLE))
def test_one_publisher_in_any_trouble(setting: Setting, drawn: list[Move]) -> None:
    """No gate opens for a part of a gang, whatever fails meanwhile."""
    play(setting, drawn)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(), moves(*POD_MOVES, *TROUBLE, *GANG_MOVES, *PLAYERS, *WHOLE))
def test_gang_objects_and_gangs_before_their_pods(
    setting: Setting, drawn: list[Move]
) -> None:
    """The same law for gangs that are there before their pods."""
    play(setting, drawn)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    worlds(rival=True),
    moves(*POD_MOVES, *TROUBLE, *GANG_MOVES, *PLAYERS, *WHOLE, *PIECES),
)
def test_two_publishers_of_which_one_knows_old_things(
    setting: Setting, drawn: list[Move]
) -> None:
    """The same law while a deposed one still writes."""
    play(setting, drawn)
