"""One solution means one allocation: who is in, on which node, with which devices."""

from __future__ import annotations

from solver.engines.cpsat import total
from solver.engines.direct.build import require_all_gangs
from solver.engines.direct.extract import extract
from solver.engines.direct.objective import count_ranks
from solver.placement import GangPlacement, PodPlacement
from solver.problem.problem import Problem
from tests.builders import (
    DRIVER,
    constraint,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.models import maximise, model_of, waiting_on
from tests.builders.problems import problem_of, snapshot_of

ROOT = "resource.kubernetes.io/pcieRoot"


def extracted(problem: Problem) -> tuple[GangPlacement, ...]:
    """Name the answer with the most gangs."""
    placements = model_of(problem)
    most = total([(gangs_in, 1) for gangs_in in placements.gangs.values()])
    return extract(placements, maximise(placements, most))


def pods_of(placements: tuple[GangPlacement, ...]) -> list[PodPlacement]:
    return [pod for gang in placements for pods in gang.members for pod in pods]


def names_of(pod: PodPlacement) -> list[list[str]]:
    return [[device.device for device in devices] for devices in pod.devices]


def test_of_equal_gangs_the_oldest_are_in() -> None:
    """Two of three fit: the first two."""
    problem = waiting_on({"n": 2}, [member()], [member()], [member()])
    assert [placement.gang for placement in extracted(problem)] == [0, 1]


def test_pods_go_to_nodes_in_the_order_of_their_names() -> None:
    """However the model saw the nodes."""
    pods = pods_of(extracted(waiting_on({"c": 1, "a": 2, "b": 1}, [member(count=4)])))
    assert [pod.node for pod in pods] == ["a", "a", "b", "c"]


def test_pods_take_devices_in_order_and_none_twice() -> None:
    """The first pod has the first devices, the next pod those after them."""
    pair = member(member_claim(request(count=2)), count=2)
    pods = pods_of(extracted(waiting_on({"n": 5}, [pair])))
    assert [names_of(pod) for pod in pods] == [
        [["gpu-0", "gpu-1"]],
        [["gpu-2", "gpu-3"]],
    ]


def test_devices_of_a_pod_share_the_value_that_it_chose() -> None:
    """Roots alternate, and each pod still has both its devices of one."""
    roots = {f"d{index}": "xy"[index % 2] for index in range(4)}
    content = [device(name, attributes={ROOT: root}) for name, root in roots.items()]
    same = member_claim(request(count=2), constraints=[constraint(ROOT)])
    snapshot = snapshot_of(
        {"n": [pool(*content, name="n")]}, [gang(member(same, count=2))]
    )
    taken = [names_of(pod)[0] for pod in pods_of(extracted(problem_of(snapshot)))]
    assert sorted(name for pair in taken for name in pair) == sorted(roots)
    assert all(roots[first] == roots[second] for first, second in taken)


def test_a_device_that_is_shared_serves_pods_and_requests_alike() -> None:
    """Each pod has one share of both devices; those of its own it has alone."""
    shared = [
        device(
            name,
            attributes={"type": "nic"},
            capacity={"rate": 9},
            allow_multiple_allocations=True,
        )
        for name in ("nic-a", "nic-b")
    ]
    own = [device(f"gpu-{index}", attributes={"type": "gpu"}) for index in range(3)]
    claim = member_claim(
        request("gpu", select=_of_type("gpu")),
        request("nic", count=2, select=_of_type("nic"), capacity={"rate": 3}),
    )
    snapshot = snapshot_of(
        {"n": [pool(*own, *shared, name="n")]}, [gang(member(claim, count=3))]
    )
    pods = pods_of(extracted(problem_of(snapshot)))
    assert [names_of(pod) for pod in pods] == [
        [[f"gpu-{index}"], ["nic-a", "nic-b"]] for index in range(3)
    ]


def test_who_has_admin_access_leaves_devices_to_others() -> None:
    """The pod that watches and the pod that works have the same device."""
    watch = member(member_claim(request(admin_access=True)), name="watch", count=2)
    work = member(name="work")
    snapshot = snapshot_of({"n": [pool(device("d"), name="n")]}, [gang(watch, work)])
    pods = pods_of(extracted(problem_of(snapshot)))
    assert [names_of(pod) for pod in pods] == [[["d"]]] * 3


def _of_type(name: str) -> tuple[str]:
    return (f'device.attributes["{DRIVER}"].type == "{name}"',)


def test_pods_with_the_better_alternative_come_first() -> None:
    """Of three devices one pod has its first choice of two, the other its second."""
    choice = request(first_available=[sub_request("x", count=2), sub_request("y")])
    pods = member(member_claim(choice), count=2)
    placements = model_of(waiting_on({"n": 3}, [pods]))
    require_all_gangs(placements)
    ranks = total(count_ranks(placements))
    answer = extract(placements, maximise(placements, -ranks))
    assert [(pod.alternatives, names_of(pod)) for pod in pods_of(answer)] == [
        ((0,), [["gpu-0", "gpu-1"]]),
        ((1,), [["gpu-2"]]),
    ]
