"""Where counting finds enough and no node takes the pod, the obstacle is named."""

from __future__ import annotations

from typing import Any

from contracts.allocation import Reason, Rule
from contracts.device import Device
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.allocate import allocate
from tests.builders import (
    DRIVER,
    constraint,
    counter_set,
    device,
    gang,
    member,
    member_claim,
    node,
    pool,
    request,
)
from tests.builders.problems import observe_core, problem_of, snapshot_of

ROOT = "resource.kubernetes.io/pcieRoot"
MEMORY = {"counters": {"memory": "40Gi"}}


def rooted(*roots: str) -> list[Device]:
    """Make a device at each root."""
    return [
        device(f"gpu-{number}", attributes={ROOT: root})
        for number, root in enumerate(roots)
    ]


def reason_of(
    *claims: Any, has: list[Device], held: tuple[str, ...] = (), **slices: Any
) -> Reason:
    """Ask for one pod on a node with these devices, some of which are held."""
    ids = [
        DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName(name)) for name in held
    ]
    nodes = {"n": [pool(*has, name="n", **slices)]}
    snapshot = snapshot_of(nodes, [gang(member(*claims))], taken=ids)
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    return reason


def pair(count: int) -> Any:
    return member_claim(request(count=count), constraints=[constraint(ROOT)])


def test_the_value_that_comes_nearest_is_told() -> None:
    """Three devices, two of one root; one more would be needed."""
    reason = reason_of(pair(3), has=[*rooted("a", "a", "b"), device("gpu-3")])
    assert reason.rule is Rule.CONSTRAINT
    assert reason.subject == "worker/gpus"
    assert reason.message == (
        f"no node has devices for one pod that have the same {ROOT}; n comes nearest: "
        "2 of 3 devices with the value a; 1 without a value"
    )


def test_partners_that_are_held_are_no_fault_of_the_constraint() -> None:
    """It fits as soon as somebody lets go."""
    reason = reason_of(pair(2), has=rooted("a", "a", "b", "b"), held=("gpu-0", "gpu-2"))
    assert reason.rule is Rule.TAKEN
    assert reason.message.endswith(
        "1 of 2 devices with the value a; some node would if no devices were held"
    )


def test_claims_that_fit_one_by_one_are_named() -> None:
    """Both of a pod's claims want the only device."""
    claims = [member_claim(request(), name=name) for name in ("one", "two")]
    reason = reason_of(*claims, has=rooted("a"))
    assert (reason.rule, reason.subject) == (Rule.JOINT, "worker")
    assert reason.message == (
        "no node has room for claim one and claim two together, only for each alone"
    )


def test_requests_that_fit_one_by_one_are_named() -> None:
    """Each takes more than half of the devices."""
    both = member_claim(request("a", count=2), request("b", count=2))
    reason = reason_of(both, has=rooted("a", "b", "c"), held=())
    assert (reason.rule, reason.subject) == (Rule.JOINT, "worker/gpus")
    assert reason.message == (
        "no node has room for request a and request b together, only for each alone"
    )


def test_devices_that_exclude_each_other_are_counted_together() -> None:
    """Each draws half of what there is: two of three."""
    drawing = [device(f"gpu-{i}", consumes=MEMORY) for i in range(3)]
    reason = reason_of(
        member_claim(request(count=3)), has=drawing, counters=[counter_set()]
    )
    assert (reason.rule, reason.subject) == (Rule.JOINT, "worker/gpus/gpu")
    assert reason.message == ("no node can give one pod 3 of them; the most is 2")
    reason = reason_of(
        member_claim(request(count=2)),
        has=drawing,
        counters=[counter_set()],
        held=("gpu-0",),
    )
    assert reason.rule is Rule.TAKEN
    assert reason.message == (
        "no node can give one pod 2 of them; the most is 1; some could if "
        "no devices were held"
    )


def test_all_that_exclude_each_other_are_never_given() -> None:
    drawing = [device(f"gpu-{i}", consumes=MEMORY) for i in range(3)]
    reason = reason_of(
        member_claim(request(mode="All")), has=drawing, counters=[counter_set()]
    )
    assert reason.rule is Rule.JOINT
    assert reason.message == "no node can give one pod all matching devices"


def test_who_asks_for_others_is_told_of_its_own_devices_first() -> None:
    """Nothing fits on some node where its two claims want the only device."""
    claims = [member_claim(request(), name=name) for name in ("one", "two")]
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
            ]
        }
    }
    asked = gang(member(*claims, affinity=near, labels={"app": "x"}))
    nodes = {"n": [pool(*rooted("a"), name="n")]}
    snapshot = observe_core(snapshot_of(nodes, [asked]), node("n"))
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    assert (reason.rule, reason.subject) == (Rule.JOINT, "worker")
