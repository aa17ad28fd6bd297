"""The judge refuses what is broken in one rule, by that rule's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import AllocationResult, Reason, Rule
from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import MemberAllocated
from solver.allocate import allocate
from solver.decision import Decision, GangDecision
from solver.judge.rules import judge
from solver.problem.problem import Problem
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
    resource_slice,
    taint,
)
from tests.builders.broken import (
    Broken,
    against,
    gang_of,
    problem_with,
    result_changed,
    rules_broken,
    sliced,
    with_allocation,
    world,
)
from tests.builders.problems import observe, problem_of, snapshot_of

ROOT = "resource.kubernetes.io/pcieRoot"
MODEL = f'device.attributes["{DRIVER}"].model == "big"'


def name_of(node: str, device: str) -> DeviceID:
    return DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(device))


def pairs_and_all() -> Problem:
    """Three nodes; one gang of two pods with two equal devices each, one of all."""
    nodes = {
        node: [
            pool(
                *(
                    device(
                        f"d{index}",
                        attributes={
                            "model": model,
                            ROOT: f"pci{index // 2}",
                            "i": index,
                        },
                    )
                    for index, model in enumerate(["big", "big", "big", "big", "small"])
                ),
                name=node,
            )
        ]
        for node in ("a", "b", "c", "gone")
    }
    match = constraint(ROOT)
    distinct = constraint(None, distinct=f"{DRIVER}/i")
    pair = member_claim(
        request(count=2, select=(MODEL,)), constraints=(match, distinct)
    )
    everything = member_claim(request(mode="All", select=(MODEL,)))
    gangs = [
        gang(
            member(pair, count=2),
            name="pairs",
            uid="00000000-0000-4000-8000-000000000001",
        ),
        gang(
            member(everything), name="all", uid="00000000-0000-4000-8000-000000000002"
        ),
    ]
    return problem_of(
        snapshot_of(
            nodes,
            gangs,
            taken=[name_of("a", "d3")],
            taints={name_of("b", "d3"): taint()},
            away=["gone"],
        )
    )


def with_member(
    decision: Decision,
    change: Callable[[MemberAllocated], MemberAllocated],
    gang: int = 0,
) -> Decision:
    decided = decision.gangs[gang]
    first, *rest = decided.members
    return with_gang(
        decision, structs.replace(decided, members=(change(first), *rest)), gang
    )


def with_gang(decision: Decision, decided: GangDecision, gang: int = 0) -> Decision:
    gangs = list(decision.gangs)
    gangs[gang] = decided
    return structs.replace(decision, gangs=tuple(gangs))


def with_devices(decision: Decision, *devices: DeviceID, gang: int = 0) -> Decision:
    """Give the first pod's claim these devices instead."""

    def change(pod: MemberAllocated) -> MemberAllocated:
        claim = pod.claims[0]
        allocation: AllocationResult = claim.allocation
        result = allocation.devices.results[0]
        results = tuple(
            structs.replace(result, driver=d.driver, pool=d.pool, device=d.device)
            for d in devices
        )
        inner = structs.replace(allocation.devices, results=results)
        changed = structs.replace(
            claim, allocation=structs.replace(allocation, devices=inner)
        )
        return structs.replace(pod, claims=(changed,))

    return with_member(decision, change, gang)


def with_node(decision: Decision, node: str) -> Decision:
    """Put the first pod on another node."""
    return with_member(decision, lambda pod: structs.replace(pod, node=NodeName(node)))


def first(decision: Decision, gang: int = 0) -> list[DeviceID]:
    results = decision.gangs[gang].members[0].claims[0].allocation.devices.results
    return [item.device_id for item in results]


def on(decision: Decision, *names: str, node: str = "") -> list[DeviceID]:
    node = node or decision.gangs[0].members[0].node
    return [name_of(node, name) for name in names]


MUTATIONS: dict[str, Callable[[Decision], Decision]] = {
    "gangsAnswered": lambda d: structs.replace(d, gangs=d.gangs[:1]),
    "gangIsWhole": lambda d: with_gang(
        d, structs.replace(d.gangs[0], members=d.gangs[0].members[:1])
    ),
    "requestsFilled": lambda d: with_devices(d, *first(d)[:1]),
    "devicesExclusive": lambda d: with_devices(
        with_node(d, d.gangs[0].members[1].node),
        *[
            r.device_id
            for r in d.gangs[0].members[1].claims[0].allocation.devices.results
        ],
    ),
    "attributesMatch": lambda d: with_devices(d, *on(d, "d0", "d2")),
    "attributesDistinct": lambda d: with_devices(d, *on(d, "d0", "d0")),
    "selected": lambda d: with_devices(d, *on(d, "d4", "d0")),
    "deviceExists": lambda d: with_devices(d, *on(d, "d0", "d9")),
    "notTaken": lambda d: with_devices(with_node(d, "a"), *on(d, "d2", "d3", node="a")),
    "tolerated": lambda d: with_devices(
        with_node(d, "b"), *on(d, "d2", "d3", node="b")
    ),
    "oneNode": lambda d: with_devices(d, name_of("a", "d0"), name_of("c", "d0")),
    "nodeUsable": lambda d: with_member(
        d, lambda pod: structs.replace(pod, node=NodeName("gone"))
    ),
    "allDevices": lambda d: with_devices(d, *first(d, 1)[:-1], gang=1),
    "valueIsTrue": lambda d: structs.replace(
        d, objective=(structs.replace(d.objective[0], value=99, bound=99),)
    ),
}


def test_an_untouched_decision_is_right() -> None:
    """The decision that the other tests break has no violation."""
    problem = pairs_and_all()
    decision = allocate(problem)
    assert all(item.members for item in decision.gangs)
    assert judge(problem, decision) == ()


@pytest.mark.parametrize("rule", MUTATIONS)
def test_a_broken_rule_is_named(rule: str) -> None:
    """Each change breaks the rule that it is listed under."""
    problem = pairs_and_all()
    broken = MUTATIONS[rule](allocate(problem))
    assert rule in {violation.partition(":")[0] for violation in judge(problem, broken)}


def test_a_bound_below_the_value_is_a_lie() -> None:
    """Nothing exceeds its own bound."""
    problem = pairs_and_all()
    decision = allocate(problem)
    tier = structs.replace(decision.objective[0], bound=0)
    lie = structs.replace(decision, objective=(tier,))
    assert any("bound" in violation for violation in judge(problem, lie))


def test_members_and_reasons_exclude_each_other() -> None:
    """A gang is in, or it is told why not."""
    problem = pairs_and_all()
    decision = allocate(problem)
    both = structs.replace(decision.gangs[0], reasons=(Reason(rule=Rule.JOINT),))
    assert judge(problem, with_gang(decision, both))


def too_many() -> Broken:
    everything = gang_of(member_claim(request(mode="All")))
    few = problem_with(world(*devices(32), gangs=(everything,)))
    many = problem_with(world(*devices(33), gangs=(everything,)))

    def add(allocation: Any) -> Any:
        results = allocation.devices.results
        more = structs.replace(results[0], device="gpu-32")
        inner = structs.replace(allocation.devices, results=(*results, more))
        return structs.replace(allocation, devices=inner)

    return many, with_allocation(allocate(few), add)


MALFORMED = NodeSelector(
    node_selector_terms=(
        NodeSelectorTerm(
            match_expressions=(NodeSelectorRequirement(key="rank", operator="Gt"),)
        ),
    )
)


def without_objective() -> Broken:
    made = problem_with(world())
    return made, structs.replace(allocate(made), objective=())


def on_unknown_node() -> Broken:
    made = problem_with(sliced(device(), all_nodes=True))
    decision = allocate(made)
    first = decision.gangs[0]
    pods = tuple(structs.replace(p, node=NodeName("ghost")) for p in first.members)
    gang = structs.replace(first, members=pods)
    return made, structs.replace(decision, gangs=(gang,))


def beside_malformed() -> Broken:
    odd = resource_slice(device(), pool="odd", node_selector=MALFORMED)
    return against(problem_with(world()), problem_with(observe(world(), "odd", odd)))


BROKEN: dict[str, Callable[[], Broken]] = {
    "attributePresent": lambda: result_changed(
        world(
            device("a", attributes={"numa": 1}),
            device("b"),
            gangs=(
                gang_of(
                    member_claim(request(), constraints=[constraint(f"{DRIVER}/numa")])
                ),
            ),
        ),
        device="b",
    ),
    "claimLimit": too_many,
    "devicesDiffer": lambda: result_changed(
        world(*devices(2), gangs=(gang_of(member_claim(request(count=2))),)),
        device="gpu-1",
    ),
    "requestKnown": lambda: result_changed(world(), request="other"),
    "nodeUsable: a node that does not exist": on_unknown_node,
    "nodeUsable: a malformed selector on the node": beside_malformed,
    "valueIsTrue: a missing tier": without_objective,
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_of_gangs_claims_and_values_is_named(rule: str) -> None:
    """What breaks a rule of whole gangs, claims or values is refused by that rule."""
    assert rule.partition(":")[0] in rules_broken(BROKEN[rule]())
