"""The value that a model keeps is what room is worth after, less what it was worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from contracts.device import Device
from contracts.gang import Member
from solver.engines.direct.build import fix
from solver.engines.direct.slack import value_kept
from tests.builders import (
    constraint,
    counter_set,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
)
from tests.builders.models import DRAWN_UID, maximise, model_of
from tests.builders.problems import (
    PARAMETERS,
    expected_of,
    observe_core,
    problem_of,
    snapshot_of,
)

ROOT = "resource.kubernetes.io/pcieRoot"
PAIR = member(member_claim(request(count=2)))


def kept(content: Sequence[Device], pods: int, coming: Member, **pod: Any) -> int:
    """Keep what can be kept where so many of four single pods are placed on a node."""
    gangs = [
        gang(member(**pod), name=f"g{number}", uid=DRAWN_UID.format(number))
        for number in range(4)
    ]
    snapshot = snapshot_of({"n": [pool(*content, name="n")]}, gangs)
    snapshot = observe_core(snapshot, node("n", allocatable={"cpu": 8, "pods": 100}))
    expected = expected_of(snapshot, coming, weight=3, size=500)
    placements = model_of(problem_of(snapshot, PARAMETERS, expected))
    (gangs_in,) = placements.gangs.values()
    fix(placements, gangs_in, pods)
    gain = value_kept(placements)
    assert gain is not None
    return maximise(placements, gain).value_reached


def worth(room: int) -> int:
    """Weigh room for pods that take half a device each."""
    return 3 * 500 * room


def worth_of_shares(room: int) -> int:
    """Weigh room for shares of devices: the first thousand counts five times."""
    return worth(room) + 3 * 4 * min(500 * room, 1000)


@pytest.mark.parametrize("pods", range(5))
def test_devices_that_are_taken_are_room_lost(pods: int) -> None:
    """Of four devices the rest is pairs; an odd one is worth nothing."""
    lost = worth(2) - worth((4 - pods) // 2)
    assert kept(devices(4), pods, PAIR) == -lost


@pytest.mark.parametrize(("pods", "room"), [(0, 2), (1, 1), (4, 1)])
def test_what_the_node_has_left_bounds_room(pods: int, room: int) -> None:
    """Eight CPUs hold two pods of four; a pod of one CPU takes the second's."""
    coming = member(resources={"cpu": 4})
    lost = worth(2) - worth(room)
    assert kept(devices(8), pods, coming, resources={"cpu": 1}) == -lost


@pytest.mark.parametrize(("pods", "room"), [(1, 1), (2, 1), (3, 0)])
def test_room_under_a_constraint_is_counted_value_by_value(
    pods: int, room: int
) -> None:
    """Three devices of one root and one of another hold one pair, whoever is taken."""
    content = [
        device(f"d{index}", attributes={ROOT: root})
        for index, root in enumerate("xxxy")
    ]
    pair = member(member_claim(request(count=2), constraints=[constraint(ROOT)]))
    assert kept(content, pods, pair) == worth(room) - worth(1)


@pytest.mark.parametrize(("pods", "room"), [(1, 1), (2, 1), (3, 0)])
def test_shares_that_are_taken_are_room_lost(pods: int, room: int) -> None:
    """Shares of 2 leave 6, 4 and 2 of 8: one more share of 4, one, and none."""
    whole = device("d", capacity={"memory": 8}, allow_multiple_allocations=True)
    coming = member(member_claim(request(capacity={"memory": 4})))
    small = member_claim(request(capacity={"memory": 2}))
    gangs = [
        gang(member(small), name=f"g{number}", uid=DRAWN_UID.format(number))
        for number in range(4)
    ]
    snapshot = snapshot_of({"n": [pool(whole, name="n")]}, gangs)
    expected = expected_of(snapshot, coming, weight=3, size=500)
    placements = model_of(problem_of(snapshot, PARAMETERS, expected))
    (gangs_in,) = placements.gangs.values()
    fix(placements, gangs_in, pods)
    gain = value_kept(placements)
    assert gain is not None
    lost = worth_of_shares(2) - worth_of_shares(room)
    assert maximise(placements, gain).value_reached == -lost


def test_what_is_left_of_counters_is_not_modelled() -> None:
    """Whether a device could still draw is not linear in what others draw."""
    content = [device(f"d{n}", consumes={"card": {"slices": 1}}) for n in range(4)]
    card = counter_set("card", slices=3)
    one = member(member_claim(request()))
    snapshot = snapshot_of(
        {"n": [pool(*content, name="n", counters=[card])]}, [gang(one)]
    )
    placements = model_of(problem_of(snapshot, PARAMETERS, expected_of(snapshot, one)))
    assert value_kept(placements) is None
