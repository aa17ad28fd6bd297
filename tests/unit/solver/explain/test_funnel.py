"""The first rule that leaves too few devices is the reason, with its counts."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.allocate import allocate
from solver.decision import Decision
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    taint,
)
from tests.builders.problems import problem_of, snapshot_of

NAMES = [
    DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName(f"gpu-{index}"))
    for index in range(2)
]


def reason_of(*requests: Any, constraints: Any = (), **world: Any) -> Reason:
    """Ask for devices of a node with two of them; say why there are none."""
    pod = member(member_claim(*requests, constraints=constraints))
    nodes = {"n": [pool(*devices(2), name="n")]}
    decision = allocate(problem_of(snapshot_of(nodes, [gang(pod)], **world)))
    (reason,) = decision.gangs[0].reasons
    return reason


def test_too_few_devices_are_counted() -> None:
    """Nobody holds any, so there is no candidate."""
    reason = reason_of(request(count=3))
    assert reason.rule is Rule.NO_CANDIDATE
    assert reason.subject == "worker/gpus/gpu"


@pytest.mark.parametrize(
    ("world", "rule"),
    [
        ({"taken": NAMES}, Rule.TAKEN),
        ({"taints": {name: taint() for name in NAMES}}, Rule.TAINTED),
        ({"taken": NAMES[:1], "taints": {NAMES[1]: taint()}}, Rule.TAINTED),
        ({"away": ["n"]}, Rule.NODE),
    ],
)
def test_enough_devices_that_cannot_be_had_say_why(
    world: dict[str, Any], rule: Rule
) -> None:
    """Held by others, tainted, or on a node that is away."""
    assert reason_of(request(), **world).rule is rule


def test_devices_that_do_not_match_are_the_constraints_fault() -> None:
    """Each would do alone; together they have no value in common."""
    reason = reason_of(request(count=2), constraints=[constraint()])
    assert reason.rule is Rule.CONSTRAINT


def test_a_request_for_all_says_which_of_them_cannot_be_had() -> None:
    """It is not met by the rest, whatever is free."""
    reason = reason_of(request(mode="All"), taken=NAMES[:1])
    assert reason.rule is Rule.TAKEN
    assert "all matching devices" in reason.message
    assert reason.facts["free"] == 1


def test_a_selector_that_fails_is_named_with_its_device() -> None:
    """Its author finds both in the message."""
    broken = f'device.attributes["{DRIVER}"].model == "big"'
    reason = reason_of(request(select=(broken,)))
    assert reason.rule is Rule.SELECTOR_ERROR
    assert device().name in reason.message


def decide(nodes: dict[str, Any], *gangs: Any, **world: Any) -> Decision:
    return allocate(problem_of(snapshot_of(nodes, list(gangs), **world)))


def fleet(count: int, *shared: Any, gpus: int = 2) -> dict[str, Any]:
    """Make so many nodes with two GPUs each."""
    return {
        f"n{index}": [pool(*devices(gpus), name=f"n{index}"), *shared]
        for index in range(count)
    }


def test_room_is_told_beside_what_is_asked() -> None:
    wants = gang(member(member_claim(request(count=2)), count=4))
    (reason,) = decide(fleet(3), wants).gangs[0].reasons
    assert reason.message.endswith("which is room for 3 of 4 pods")
    assert (reason.facts["podsWithRoom"], reason.facts["pods"]) == (3, 4)


def test_a_taint_of_devices_is_named_with_the_nodes_it_is_on() -> None:
    ids = [
        DeviceID(DriverName(DRIVER), PoolName(f"n{node}"), DeviceName(f"gpu-{index}"))
        for node in range(3)
        for index in range(2)
    ]
    tainted = dict.fromkeys(ids, taint())
    wants = gang(member(member_claim(request(count=2)), count=2))
    (reason,) = decide(fleet(4), wants, taints=tainted).gangs[0].reasons
    assert reason.rule is Rule.TAINTED
    assert "on 3 of 4 nodes, such as n0)" in reason.message
    assert f"{taint().key}" in reason.message


OTHER_DRIVER = "nic.example.com"
NEEDS_MODEL = f'device.attributes["{DRIVER}"].model == "a"'


def with_nics(gpus: int) -> dict[str, Any]:
    """Give each of two nodes GPUs with a model, and NICs, which have none."""
    cards = [device(f"gpu-{i}", attributes={"model": "a"}) for i in range(gpus)]
    nics = [device(f"nic-{i}") for i in range(8)]
    return {
        name: [pool(*cards, name=name), pool(*nics, name=name, driver=OTHER_DRIVER)]
        for name in ("n0", "n1")
    }


def test_a_selector_that_fails_in_another_pool_is_not_why_devices_are_too_few() -> None:
    """The count is, and the error is told besides."""
    wants = gang(member(member_claim(request(count=4, select=(NEEDS_MODEL,)))))
    (reason,) = decide(with_nics(3), wants).gangs[0].reasons
    assert reason.rule is Rule.NO_CANDIDATE
    assert "room for 0 of 1 pod; besides, selector #0 on device " in reason.message


def test_a_selector_that_fails_on_what_could_have_helped_is_why() -> None:
    """Devices of the same driver, as many as are missing; else the count is."""
    model = {"model": "a"}
    mixed = [device("gpu-0", attributes=model), device("gpu-1"), device("gpu-2")]
    nodes = {"n": [pool(*mixed, name="n")]}
    for count, rule in ((3, Rule.SELECTOR_ERROR), (4, Rule.NO_CANDIDATE)):
        wants = gang(member(member_claim(request(count=count, select=(NEEDS_MODEL,)))))
        (reason,) = decide(nodes, wants).gangs[0].reasons
        assert reason.rule is rule


def test_who_outranks_is_named() -> None:
    """Of higher priority first, with the number of the others; not who comes after."""
    pair = member(member_claim(request(count=2)))
    winners = [gang(pair, name=f"w{i}", uid=f"w{i}", priority=i + 1) for i in range(5)]
    loser = gang(pair, name="late", uid="late")
    found = decide(fleet(5), *winners, loser)
    (reason,) = next(g for g in found.gangs if g.name == "late").reasons
    assert reason.rule is Rule.OUTRANKED
    assert "the 5 gangs decided with it that have its priority 0 or more: " in (
        reason.message
    )
    named = [f"team-a/w{i} (priority {i + 1})" for i in (4, 3, 2)]
    assert reason.message.endswith(f": {', '.join(named)} and 2 more")
    assert reason.facts == {"gangs": 5, "priority": 0}


def test_who_asks_for_other_classes_or_has_another_priority_is_told_of_others() -> None:
    """What is found for one gang is said only of those that it holds for as well."""
    classes = {"big": ("true",), "small": ("true",)}

    def asking(device_class: str, name: str, priority: int) -> Any:
        pair = member(member_claim(request(count=2, device_class=device_class)))
        return gang(pair, name=name, uid=name, priority=priority)

    winners = [asking("big", f"b{i}", 9) for i in range(4)] + [asking("small", "s", 8)]
    losers = [
        asking("big", "lb", 0),
        asking("small", "ls", 0),
        asking("small", "l5", 5),
    ]
    found = decide(fleet(5), *winners, *losers, classes=classes)
    said = {g.name: g.reasons[0].message for g in found.gangs if g.reasons}
    assert ": team-a/b0 (priority 9), " in said["lb"]
    assert ": team-a/s (priority 8), " in said["ls"]
    assert "priority 0 or more" in said["ls"]
    assert "priority 5 or more" in said["l5"]
