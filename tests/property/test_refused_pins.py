"""No gang waits in silence behind an open gate: a refusal is followed up.

The games of tests/simulation, in which kube-scheduler refuses some nodes for a reason
that nobody else can see.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.lifecycle import LifecycleMessage
from contracts.messages import SubmitGang
from tests.lab.soak import sized
from tests.simulation.game import Game
from tests.simulation.setting import Setting, Slot

EXAMPLES = sized(30, 5_000)
MOVES = (
    *("crowd", "crowd", "advance", "advance", "advance", "schedule", "schedule"),
    *("hear", "act", "plan", "carry_out", "control", "solve", "pass_time", "restart"),
)
Move = tuple[str, int, int]
DRAWN = st.lists(
    st.tuples(st.sampled_from(MOVES), st.integers(0, 11), st.integers(0, 11)),
    max_size=40,
)


@st.composite
def gangs(draw: st.DrawFn) -> tuple[Setting, set[str]]:
    """Draw a gang, nodes, and those of them that are refused: on the others is room."""
    nodes, devices = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    unfit = draw(st.sets(st.integers(0, nodes - 1), min_size=1, max_size=nodes - 1))
    room = (nodes - len(unfit)) * devices
    count = draw(st.integers(1, room))
    owner = draw(st.sampled_from(["Job", "ReplicaSet", "StatefulSet"]))
    slots = tuple(Slot(f"red-{n}", "red", owner=owner) for n in range(count))
    setting = Setting(slots, nodes, devices, recovery="Recreate")
    return setting, {f"node-{number}" for number in unfit}


def gang_size(message: LifecycleMessage) -> int:
    """Count the pods that a submission asks for."""
    assert isinstance(message, SubmitGang)
    return sum(member.count for member in message.gang.spec.members)


@settings(max_examples=EXAMPLES, deadline=None)
@given(gangs(), DRAWN)
def test_a_refused_gang_is_made_anew_where_there_is_room(
    drawn: tuple[Setting, set[str]], moves: list[Move]
) -> None:
    """Whatever happens in between, publishers that begin anew included."""
    setting, unfit = drawn
    game = Game(setting)
    game.world.unfit = unfit
    game.play(moves)
    game.settle()
    game.laws.check_elsewhere()
    asked = [message for _, message in game.bus.streams["SUBMIT"]]
    assert {gang_size(message) for message in asked} == {len(setting.slots)}
    game.tear_down()
    game.laws.check_nothing_left(game.leader)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(["", "Job"]), st.integers(1, 3), DRAWN)
def test_a_gang_that_all_nodes_refuse_is_told_so(
    owner: str, nodes: int, moves: list[Move]
) -> None:
    """Without a wish to be made anew, or with nobody who would do that, it stays."""
    slots = (Slot("red-0", "red", owner=owner), Slot("red-1", "red", owner=owner))
    recovery = "" if owner else "Recreate"
    game = Game(Setting(slots, nodes, 2, recovery=recovery))
    game.world.unfit = {f"node-{number}" for number in range(nodes)}
    game.play(moves)
    game.settle()
    game.laws.check_end(game.leader)
