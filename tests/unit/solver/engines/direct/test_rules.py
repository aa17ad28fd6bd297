"""Each rule lets a problem pass, and makes another one infeasible, all by itself.

What a rule forbids must be possible as soon as that rule alone is left out: so no
bound on variables and no other rule can stand in for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.device import Device
from contracts.gang import Member
from solver.engines import cpsat
from solver.engines.direct import rules
from solver.engines.direct.build import fix
from solver.problem.problem import Problem
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
    sub_request,
)
from tests.builders.models import Rule, model_of, place_all, solve_model, waiting_on
from tests.builders.problems import observe_core, problem_of, snapshot_of

ROOT, INDEX = "resource.kubernetes.io/pcieRoot", f"{DRIVER}/index"


def on_one_node(content: Iterable[Device], *members: Member, cpu: int = 64) -> Problem:
    """Let one gang wait for one node."""
    snapshot = snapshot_of({"n": [pool(*content, name="n")]}, [gang(*members)])
    allocatable = {"cpu": cpu, "pods": 110}
    return problem_of(observe_core(snapshot, node("n", allocatable=allocatable)))


def of_model(name: str) -> tuple[str]:
    return (f'device.attributes["{DRIVER}"].model == "{name}"',)


def of_models(**counts: int) -> list[Device]:
    return [
        device(f"{model}-{index}", attributes={"model": model})
        for model, count in counts.items()
        for index in range(count)
    ]


def on_roots(*roots: str) -> list[Device]:
    """Make a device on each of these PCIe roots, no two with one index."""
    return [
        device(f"d{index}", attributes={ROOT: root, "index": index})
        for index, root in enumerate(roots)
    ]


def forbids(rule: Rule, problem: Problem) -> bool:
    """Whether a rule makes a problem infeasible that all others would let pass."""
    alone = place_all(problem, without=rule)
    return isinstance(place_all(problem), cpsat.Infeasible) and isinstance(
        alone, cpsat.Solved
    )


def allows(problem: Problem) -> bool:
    """Whether all rules let a problem pass."""
    return isinstance(place_all(problem), cpsat.Solved)


def test_gangs_are_whole() -> None:
    """A gang is in with all its pods: three of four are no answer."""
    assert allows(waiting_on({"n": 3}, [member(count=3)]))
    assert forbids(rules.gangs_are_whole, waiting_on({"n": 3}, [member(count=4)]))


def test_one_alternative_is_chosen() -> None:
    """A pod takes one of its alternatives, and cannot go without any."""
    choice = request("a", first_available=[sub_request("x"), sub_request("y", count=2)])
    pod = member(member_claim(choice, request("b")))
    assert allows(waiting_on({"n": 2}, [pod]))
    assert forbids(rules.one_alternative_is_chosen, waiting_on({"n": 1}, [pod]))


def test_requests_are_filled() -> None:
    """Two devices are two: of one that is shared a pod gets a single share."""
    first, second = (
        device(name, capacity={"memory": 8}, allow_multiple_allocations=True)
        for name in ("a", "b")
    )
    pod = member(member_claim(request(count=2, capacity={"memory": 1})))
    assert allows(on_one_node([first, second], pod))
    assert forbids(rules.requests_are_filled, on_one_node([first], pod))


def test_requests_are_filled_from_several_groups() -> None:
    """Two of any model and a big one are three devices, or there is no answer."""
    big = of_model("big")
    pod = member(
        member_claim(
            request("any", count=2),
            request(
                "big",
                first_available=[
                    sub_request("one", select=big),
                    sub_request("two", count=2, select=big),
                ],
            ),
        )
    )
    assert allows(on_one_node(of_models(small=1, big=2), pod))
    assert forbids(
        rules.requests_are_filled, on_one_node(of_models(small=1, big=1), pod)
    )


def test_devices_are_exclusive() -> None:
    """Who may have any device cannot have the one that another pod needs."""
    pods = (
        member(name="any"),
        member(member_claim(request(select=of_model("big"))), name="big"),
    )
    assert allows(on_one_node(of_models(big=1, small=1), *pods))
    assert forbids(rules.devices_are_exclusive, on_one_node(of_models(big=1), *pods))


def test_admin_access_comes_last() -> None:
    """A device may be watched after it was taken, but not taken after."""
    watch = member_claim(request(admin_access=True), name="watch")
    work = member_claim(request(), name="work")
    assert allows(on_one_node(devices(1), member(work, watch)))
    assert forbids(
        rules.admin_access_comes_last, on_one_node(devices(1), member(watch, work))
    )


def test_claims_stay_within_limit() -> None:
    """All devices of two models are 32 at most, together, in one claim."""
    both = member_claim(
        request("a", mode="All", select=of_model("small")),
        request("b", mode="All", select=of_model("big")),
    )
    assert allows(on_one_node(of_models(small=16, big=16), member(both)))
    assert forbids(
        rules.claims_stay_within_limit,
        on_one_node(of_models(small=16, big=17), member(both)),
    )


def test_node_resources_suffice() -> None:
    """Pods that fit each alone need the CPUs of one node together."""
    pods = (
        member(name="a", resources={"cpu": 3}),
        member(name="b", resources={"cpu": 2}),
    )
    assert allows(on_one_node(devices(2), *pods, cpu=5))
    assert forbids(rules.node_resources_suffice, on_one_node(devices(2), *pods, cpu=4))


def test_attributes_match() -> None:
    """Two requests under one matchAttribute get devices of one PCIe root."""
    same = member(
        member_claim(request("a"), request("b"), constraints=[constraint(ROOT)])
    )
    assert allows(on_one_node(on_roots("x", "y", "y"), same))
    assert forbids(rules.attributes_match, on_one_node(on_roots("x", "y"), same))


def test_attributes_match_for_a_pod_that_has_a_lot_of_its_own() -> None:
    """The same holds where a second constraint makes pods count one by one."""
    both = [constraint(ROOT), constraint(distinct=INDEX)]
    same = member(member_claim(request("a"), request("b"), constraints=both))
    assert allows(on_one_node(on_roots("x", "y", "y"), same))
    assert forbids(rules.attributes_match, on_one_node(on_roots("x", "y"), same))


def test_attributes_are_distinct() -> None:
    """Both big devices have one index, which other devices cannot make up for."""
    differ = member(
        member_claim(
            request("big", count=2, select=of_model("big")),
            request("small", select=of_model("small")),
            constraints=[constraint(distinct=INDEX)],
        )
    )

    def content(*big: int) -> list[Device]:
        models = [("big", index) for index in big] + [("small", 1), ("small", 2)]
        return [
            device(f"d{number}", attributes={"model": model, "index": index})
            for number, (model, index) in enumerate(models)
        ]

    assert allows(on_one_node(content(0, 3), differ))
    assert forbids(rules.attributes_are_distinct, on_one_node(content(0, 0), differ))


def test_single_lots_fill_in_order() -> None:
    """Of two equal lots of one pod the second is used only after the first."""
    differ = member(member_claim(constraints=[constraint(distinct=INDEX)]))
    snapshot = snapshot_of(
        {"n": [pool(*on_roots("x", "y"), name="n")]},
        [
            gang(differ, name=f"g{number}", uid=f"00000000-0000-4000-8000-{number:012}")
            for number in range(2)
        ],
    )
    problem = problem_of(snapshot)
    for values, rule, outcome in (
        ((1, 0), None, cpsat.Solved),
        ((0, 1), None, cpsat.Infeasible),
        ((0, 1), rules.single_lots_fill_in_order, cpsat.Solved),
    ):
        placements = model_of(problem, without=rule)
        for lot, value in zip(placements.lots, values, strict=True):
            fix(placements, lot.pods, value)
        assert isinstance(solve_model(placements), outcome)
