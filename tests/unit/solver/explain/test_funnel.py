"""The first rule that leaves too few devices is the reason, with its counts."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Reason, Rule
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.allocate import allocate
from solver.decision import Decision
from solver.explain.funnel import NO_NODES
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
    resource_slice,
    sub_request,
    taint,
)
from tests.builders.problems import observe, observe_core, problem_of, snapshot_of

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


def test_a_pool_that_two_nodes_contest_is_named_with_both() -> None:
    """Its devices are nobody's, so somebody has to look at these two."""
    pod = member(member_claim(request()))
    nodes = {node: [pool(*devices(2), name="p")] for node in ("m", "n")}
    decision = allocate(problem_of(snapshot_of(nodes, [gang(pod)])))
    (reason,) = decision.gangs[0].reasons
    assert reason.rule is Rule.NO_CANDIDATE
    contest = f"pool {DRIVER}/p is announced by nodes m and n"
    assert reason.message.endswith(f"; no devices match; {contest}")


def test_devices_that_do_not_match_are_the_constraints_fault() -> None:
    """Each would do alone; together they have no value in common."""
    reason = reason_of(request(count=2), constraints=[constraint()])
    assert reason.rule is Rule.CONSTRAINT


def test_a_request_for_all_says_which_of_them_cannot_be_had() -> None:
    """It is not met by the rest, whatever is free."""
    reason = reason_of(request(mode="All"), taken=NAMES[:1])
    assert reason.rule is Rule.TAKEN
    assert reason.message == (
        "1 pod needs all matching gpu.example.com of one node; 2 devices match, "
        "1 is free; no node has all of them available"
    )
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
    assert reason.message == (
        "each of 4 pods needs 2 gpu.example.com on one node; 6 devices match; "
        "room for 3 of 4 pods"
    )
    assert (reason.facts["room"], reason.facts["pods"]) == (3, 4)


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
    assert "the most on one node is 3 (n0); also, selector #0 on device " in (
        reason.message
    )


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
    assert "the 5 gangs of priority 0 or higher decided with it: " in (reason.message)
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
    assert "priority 0 or higher" in said["ls"]
    assert "priority 5 or higher" in said["l5"]


def test_what_lasts_is_named_before_what_may_pass() -> None:
    """Of 3 devices 1 is on a node that the pods select, and that one is held."""
    pools = {
        "a": [pool(*devices(1), name="a")],
        "b": [pool(*devices(2), name="b")],
    }
    held = [DeviceID(DriverName(DRIVER), PoolName("a"), DeviceName("gpu-0"))]
    wants = gang(member(member_claim(request()), count=2, node_selector={"pool": "a"}))
    snapshot = observe_core(
        snapshot_of(pools, [wants], taken=held),
        node("a", labels={"pool": "a"}),
        node("b", labels={"pool": "b"}),
    )
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    assert reason.rule is Rule.NODE_SELECTION
    assert reason.message == (
        "each of 2 pods needs 1 gpu.example.com; 3 devices match, 1 is on a node that "
        "it selects, none is free"
    )


def test_a_cordon_is_not_blamed_on_the_selector() -> None:
    """The node that the pod selects is there, but cordoned."""
    wants = gang(member(member_claim(request()), node_selector={"pool": "a"}))
    snapshot = observe_core(
        snapshot_of(fleet(2), [wants]),
        node("n0", labels={"pool": "a"}, unschedulable=True),
        node("n1"),
    )
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    assert reason.rule is Rule.NODE_TAINTED
    assert "none is on a node whose taints it tolerates (unschedulable, " in (
        reason.message
    )


def test_alternatives_are_counted_together() -> None:
    """Two nodes serve the first choice of a pod, one more the second of another."""
    cards = [device(f"gpu-{i}", attributes={"model": "a"}) for i in range(2)]
    pools = {
        "n0": [pool(*cards, name="n0")],
        "n1": [pool(device("x", attributes={"model": "b"}), name="n1")],
    }
    best, other = (f'device.attributes["{DRIVER}"].model == "{m}"' for m in "ab")
    choices = [
        sub_request("best", select=(best,)),
        sub_request("other", select=(other,)),
    ]
    asked = member_claim(request(first_available=choices))
    (reason,) = decide(pools, gang(member(asked, count=4))).gangs[0].reasons
    assert reason.rule is Rule.NO_CANDIDATE
    assert reason.message == (
        "best: each of 4 pods needs 1 gpu.example.com; 2 devices match; room for 2 of "
        "4 pods; other has room for 1, all together for 3 of 4 pods"
    )
    assert decide(pools, gang(member(asked, count=3))).gangs[0].members


def test_a_claim_of_all_is_limited() -> None:
    """33 devices match; a claim holds at most 32 of them."""
    asked = member(member_claim(request(mode="All")))
    (reason,) = decide(fleet(1, gpus=33), gang(asked)).gangs[0].reasons
    assert reason.rule is Rule.TOO_MANY_DEVICES
    assert reason.message.endswith("n0 has 33, and a claim may have at most 32")


def test_without_nodes_nobody_says_that_devices_do_not_match() -> None:
    """A pool for all nodes names none (kubernetes#134466)."""
    for_all = resource_slice(device(), name="s", pool="p", all_nodes=True)
    snapshot = snapshot_of({}, [gang(member(member_claim(request())))])
    problem = problem_of(observe(snapshot, "s", for_all))
    (reason,) = allocate(problem).gangs[0].reasons
    assert (reason.rule, reason.message) == (Rule.NODE, NO_NODES)


def test_members_that_ask_for_the_same_are_counted_together() -> None:
    """Each has room by itself: of five pods together four have."""
    asked = gang(
        member(member_claim(request(count=8)), name="master"),
        member(member_claim(request(count=8)), name="worker", count=4),
        member(member_claim(request()), name="other"),
    )
    nodes = {f"n{n}": [pool(*devices(8), name=f"n{n}")] for n in range(4)}
    (answer,) = allocate(problem_of(snapshot_of(nodes, [asked]))).gangs
    (reason,) = answer.reasons
    assert (reason.rule, reason.subject) == (Rule.NO_CANDIDATE, "master/gpus/gpu")
    assert reason.message.endswith("room for 4 of 5 pods")
