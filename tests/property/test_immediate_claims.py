"""Claims that need no pod have devices or a reason, and keep them, whatever happens.

The games of tests/simulation, in which pods come to such claims and go.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from publisher.gangs.running.plan_repairs import plan_sweep
from publisher.gangs.view import group_of_claim
from tests.lab.soak import sized
from tests.simulation.game import Game
from tests.simulation.setting import Setting, Slot
from tests.simulation.world import devices_of, is_kept

EXAMPLES = sized(40, 5_000)
CLAIMS = ("one", "two")
PODS = ("create", "crowd", "generate", "delete", "finish", "terminate", "replace")
PLAYERS = ("solve", "control", "schedule", "restart")
STEPS = (
    *("advance", "advance", "advance", "hear", "act", "act"),
    *("hear_api", "hear_bus", "plan", "carry_out", "carry_out"),
)
TROUBLE = (
    *("clear", "discard", "allocate", "restore", "label", "cancel", "reject"),
    *("refuse", "unplug"),
)
Move = tuple[str, int, int]


@st.composite
def worlds(draw: st.DrawFn, *, rival: bool = False) -> Setting:
    """Draw claims that need no pod, and pods that share them or have their own."""
    slots = []
    for number in range(draw(st.integers(1, 5))):
        gang = draw(st.sampled_from(["", "red", "red"]))
        shared = draw(st.sampled_from(["", "one", "two"]))
        own = draw(st.sampled_from([0, 1])) if shared else 1
        name = f"{gang or 'lone'}-{number}"
        slots.append(Slot(name, gang, own=own, shared=shared))
    immediate = tuple(draw(st.lists(st.sampled_from(CLAIMS), unique=True)))
    nodes, devices = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    return Setting(tuple(slots), nodes, devices, rival, immediate=immediate)


def moves(*names: str) -> SearchStrategy[list[Move]]:
    """Draw what happens."""
    move = st.tuples(st.sampled_from(names), st.integers(0, 11), st.integers(0, 11))
    return st.lists(move, min_size=10, max_size=60)


def kept(game: Game) -> dict[str, set[tuple[str, str]]]:
    """Return the devices of each claim that needs no pod, by key."""
    claims = game.world.all("ResourceClaim")
    return {key: devices_of(claim) for key, claim in claims if is_kept(claim)}


def play(setting: Setting, drawn: list[Move]) -> None:
    """Play, let all pods go, and hold what claims have against what they had."""
    game = Game(setting)
    game.play(drawn)
    game.settle()
    game.laws.check_end(game.leader)
    before = kept(game)
    for key, devices in before.items():
        if not devices and key not in game.world.damaged:
            reports = game.leader.report_group(group_of_claim(key))
            assert [why.phase for why in reports], f"{key} waits and nobody says why"
    for key, _ in list(game.world.all("Pod")):
        game.world.delete_pod(key)
    game.settle()
    is_cancelled = any(name == "cancel" for name, _, _ in drawn)
    for key, devices in () if is_cancelled else kept(game).items():
        others = [
            devices_of(claim)
            for other, claim in game.world.all("ResourceClaim")
            if other != key
        ]
        is_taken = any(not before[key].isdisjoint(held) for held in others)
        if before[key] and key not in game.world.damaged and not is_taken:
            assert devices == before[key], f"{key} has other devices"
    game.tear_down()
    # What lost its label is as any claim that holds devices for nobody.
    for patch in list(plan_sweep(game.leader.view)):
        game.world.patch(patch)
    game.laws.check_nothing_left(game.leader)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(), moves(*PODS, *PLAYERS, *STEPS))
def test_pods_come_and_go(setting: Setting, drawn: list[Move]) -> None:
    play(setting, drawn)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(), moves(*PODS, *PLAYERS, *STEPS, *TROUBLE))
def test_whatever_goes_wrong(setting: Setting, drawn: list[Move]) -> None:
    play(setting, drawn)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds(rival=True), moves(*PODS, *PLAYERS, *STEPS, *TROUBLE))
def test_two_publishers_at_once(setting: Setting, drawn: list[Move]) -> None:
    play(setting, drawn)
