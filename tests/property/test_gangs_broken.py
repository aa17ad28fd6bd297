"""No gang loses a part to others and runs on unnoticed.

The games of tests/simulation, in which kube-scheduler preempts pods that run.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.names import GANG
from publisher.gangs.running.broken_gangs import GANG_BROKEN
from tests.lab.soak import sized
from tests.simulation.game import Game
from tests.simulation.setting import Setting, Slot
from tests.simulation.world import is_over, uid_of

EXAMPLES = sized(40, 5_000)
GANGS = ("red", "blue")
MOVES = (
    *("crowd", "crowd", "advance", "advance", "advance", "schedule", "schedule"),
    *("hear", "act", "plan", "carry_out", "control", "solve", "generate"),
    *("preempt", "preempt", "preempt", "create"),
)
Move = tuple[str, int, int]
DRAWN = st.lists(
    st.tuples(st.sampled_from(MOVES), st.integers(0, 11), st.integers(0, 11)),
    min_size=10,
    max_size=60,
)
BEGUN: list[Move] = [("crowd", 0, 0), *[("advance", 3, 0), ("schedule", 0, 0)] * 4]
"""Moves by which gangs run."""


@st.composite
def worlds(draw: st.DrawFn, *, recovery: str, owners: tuple[str, ...]) -> Setting:
    """Draw two gangs, and devices for both."""
    sizes = [draw(st.integers(1, 4)) for _ in GANGS]
    slots = [
        Slot(f"{gang}-{number}", gang, owner=draw(st.sampled_from(owners)))
        for gang, size in zip(GANGS, sizes, strict=True)
        for number in range(size)
    ]
    nodes = draw(st.integers(1, 2))
    return Setting(tuple(slots), nodes, sum(sizes), recovery=recovery)


def list_running(game: Game, gang: str) -> set[str]:
    """Give the uids of the pods of a gang that are on their nodes."""
    return {
        uid_of(pod)
        for _, pod in game.world.all("Pod")
        if pod["metadata"]["labels"][GANG] == gang
        and pod["spec"].get("nodeName")
        and not is_over(pod)
    }


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(recovery="", owners=("", "Job", "StatefulSet")), DRAWN)
def test_a_gang_that_runs_in_part_says_so(setting: Setting, moves: list[Move]) -> None:
    """And no other: not one that is whole, nor one of which none runs."""
    game = Game(setting)
    game.play([*BEGUN, *moves])
    game.settle()
    told = {
        uid: why.reason == GANG_BROKEN
        for uid, (why, _) in game.leader.tell_all().items()
    }
    for gang in GANGS:
        running = list_running(game, gang)
        is_part = 0 < len(running) < setting.size_of(gang)
        assert all(told.get(uid, False) == is_part for uid in running), gang
    game.laws.check_end(game.leader)
    game.tear_down()
    game.laws.check_nothing_left(game.leader)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(recovery="Recreate", owners=("Job", "StatefulSet")), DRAWN)
def test_a_gang_that_is_made_anew_runs_as_a_whole(
    setting: Setting, moves: list[Move]
) -> None:
    """Whatever was preempted when, and however far its replacements were."""
    game = Game(setting)
    game.play([*BEGUN, *moves])
    game.settle()
    for gang in GANGS:
        assert len(list_running(game, gang)) == setting.size_of(gang)
    game.tear_down()
    game.laws.check_nothing_left(game.leader)
