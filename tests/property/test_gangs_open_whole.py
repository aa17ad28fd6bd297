"""Gangs are opened whole or not at all, whatever happens in which order.

The laws stand in tests/simulation/laws.py and wholeness.py; a game is any list of moves
(tests/simulation/game.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.lab.soak import SOAK
from tests.simulation.game import Game
from tests.simulation.setting import Setting, Slot

EXAMPLES = 10_000 if SOAK else 30
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
    "replace",
    "rerun",
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
    "spoil",
    "pass_time",
)
GANG_MOVES = ("gang_object", "submit_late")
PLAYERS = ("solve", "control", "schedule", "restart")
WHOLE = ("crowd", "advance", "advance", "replace", "hear", "hear", "act", "act")
OWNERS = ("", "StatefulSet", "ReplicaSet", "Job")
LIFE = ("hear", "plan", "carry_out", "solve")
"""One step in a gang's life, again and again."""
STEPS = 20
PIECES = ("hear_api", "hear_bus", "hear", "plan", "plan", "carry_out", "carry_out")


@st.composite
def worlds(draw: st.DrawFn, *, rival: bool = False) -> Setting:
    """Draw a few pods: of gangs or alone, of owners, with own or shared claims."""
    slots = []
    for number in range(draw(st.integers(1, 5))):
        gang = draw(st.sampled_from(["", "red", "red", "red", "blue"]))
        own = draw(st.sampled_from([1, 1, 1, 2, 0]))
        shared = draw(st.sampled_from(["", "", "", "one", "two"]))
        theirs = draw(st.sampled_from([False, False, False, True]))
        owner = draw(st.sampled_from(OWNERS))
        extra = draw(st.sampled_from([False, False, False, True]))
        name = f"{gang or 'lone'}-{number}"
        slots.append(Slot(name, gang, own, theirs, shared, owner, extra))
    nodes, devices = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return Setting(tuple(slots), nodes, devices, rival)


def moves(*names: str) -> SearchStrategy[list[Move]]:
    """Draw what happens."""
    move = st.tuples(st.sampled_from(names), st.integers(0, 11), st.integers(0, 11))
    return st.lists(move, min_size=15, max_size=60)


def disturbances() -> Iterator[tuple[Setting, list[Move]]]:
    """Go through gangs of four that lose pods, which are replaced in the same look.

    At every step of their life, whoever makes the pods, with devices for all of them or
    not, with one pod more than the gang needs and without.
    """
    for owner, devices, more in product(OWNERS, (2, 5), (False, True)):
        slots = [Slot(f"red-{n}", "red", owner=owner) for n in range(4)]
        if more:
            slots.append(Slot("red-4", "red", owner=owner, extra=True))
        setting = Setting(tuple(slots), nodes=1, devices=devices)
        for steps, lost in product(range(STEPS), (0, 4, 8)):
            life = [(name, 0, 0) for name in LIFE * steps]
            yield setting, [("crowd", 0, 0), *life, ("replace", steps, lost)]


def play(setting: Setting, drawn: list[Move]) -> int:
    """Play to the end and tear all down; returns how many gates were opened."""
    game = Game(setting)
    game.play(drawn)
    game.settle()
    game.laws.check_end(game.leader)
    game.tear_down()
    game.laws.check_nothing_left(game.leader)
    return game.laws.opened


def test_pods_replaced_in_one_look_at_every_step() -> None:
    """No gang is split, and none that has devices is left waiting."""
    games = islice(disturbances(), 0, None, 1 if SOAK else 35)
    opened = [play(setting, drawn) for setting, drawn in games]
    assert min(opened) == 0
    assert max(opened) > 4


def test_pods_that_are_gone_before_their_gate_opened_never_ran() -> None:
    """One of three runs; each of the others is made anew, and they begin together."""
    setting = Setting(tuple(Slot(f"red-{n}", "red") for n in range(3)), 1, 3)
    opened = []
    for steps in range(STEPS):
        life = [(name, 0, 0) for name in LIFE * steps]
        lost = [("delete", 2, 0), ("delete", 1, 0), *[("advance", 0, 0)] * 6]
        again = [("create", 1, 0), ("generate", 0, 0), *[("advance", 3, 0)] * 4]
        opened.append(play(setting, [("crowd", 0, 0), *life, *lost, *again]))
    assert {0, 1, 3} <= set(opened)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(), moves(*POD_MOVES, *PLAYERS, *WHOLE, *WHOLE, *PIECES))
def test_pods_that_come_and_go(setting: Setting, drawn: list[Move]) -> None:
    """Nothing else happens, so that gangs get far."""
    play(setting, [("crowd", 0, 0), ("advance", 3, 0), *drawn])


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
