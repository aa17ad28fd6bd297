"""The judge refuses what is broken in one rule, by that rule's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import (
    AllocationResult,
    DeviceAllocationConfiguration,
    Reason,
    ResultToleration,
    Rule,
)
from contracts.claim import DeviceConfiguration, OpaqueDeviceConfiguration
from contracts.device import (
    Device,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.features import Features
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import MemberAllocated, ObjectObserved
from contracts.pods.node_features import HOST_USERS
from contracts.workload import Node, NodeTaint
from solver.allocate import allocate
from solver.decision import Decision, GangDecision
from solver.judge.rules import judge
from solver.problem.problem import Problem
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DEVICE_CLASS,
    DRIVER,
    claim_spec,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    node,
    node_name_selector,
    pool,
    request,
    resource_slice,
    taint,
    toleration,
)
from tests.builders.broken import (
    BINDING,
    TWO_PODS,
    Broken,
    against,
    allocation_changed,
    counters,
    device_drawing,
    gang_of,
    problem_with,
    result_changed,
    rules_broken,
    shared_device,
    sliced,
    with_allocation,
    with_result,
    world,
)
from tests.builders.problems import (
    CLUSTER,
    observe,
    observe_core,
    problem_of,
    snapshot_of,
)

ON = Features(list_type_attributes=True, compatibility_groups=True)


def without_admin() -> Broken:
    watch = gang_of(member_claim(request(admin_access=True)))
    made = problem_with(world(gangs=(watch,)))
    off = structs.replace(made.parameters, features=Features(admin_access=False))
    return Problem(made.pages, made.gangs, made.selectors, off), allocate(made)


def changed_features(snapshot: Snapshot, features: Features, **fields: Any) -> Broken:
    made = problem_with(snapshot, features)
    return made, with_result(allocate(made), **fields)


DEVICES: dict[str, Callable[[], Broken]] = {
    "reachable": lambda: result_changed(
        sliced(
            device("a", node_name=NodeName("n")),
            device("b", node_name=NodeName("z")),
            per_device_node_selection=True,
        ),
        device="b",
    ),
    "bindingConditions": lambda: against(
        problem_with(world(BINDING)),
        problem_with(world(BINDING), Features(device_binding=False)),
    ),
    "capacityPolicy": lambda: against(
        problem_with(world(shared_device("10Gi"), gangs=TWO_PODS[:1])),
        problem_with(world(shared_device("10Gi", "2Gi"), gangs=TWO_PODS[:1])),
    ),
    "partitionable": lambda: changed_features(
        sliced(device("a"), device_drawing("b", "1Gi"), node="n"),
        Features(partitionable_devices=False),
        device="b",
    ),
    "negativeDraw": lambda: against(
        problem_with(world(device_drawing("a", "1Gi"), counters=counters("8Gi"))),
        problem_with(world(device_drawing("a", "-1Gi"), counters=counters("8Gi"))),
    ),
    "adminAccess": without_admin,
    "nodeOperations": lambda: against(
        problem_with(sliced(device(), node="n", skip_node_operations=("*",))),
        problem_with(sliced(device(), node="n", skip_node_operations=("*",)), ON),
    ),
}


def offered() -> Broken:
    resource = f"deviceclass.resource.kubernetes.io/{DEVICE_CLASS}"
    pod = structs.replace(member(resources={resource: 1}), claims=())
    wanted = gang(pod, uid="00000000-0000-4000-8000-000000000001")
    raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {resource: "8"}},
    }
    plugin = ObjectObserved(cluster=CLUSTER, kind="Node", key="n", object=raw)
    before, after = (world(*devices(1), gangs=(wanted,)) for _ in range(2))
    return against(problem_with(before), problem_with(apply(after, plugin)))


def fitting(node_before: Node, node_after: Node, **asked_of_node: Any) -> Broken:
    """Decide with one Node, and judge with another."""
    found = []
    for item in (node_before, node_after):
        snapshot = world(*devices(2), gangs=(gang_of(**asked_of_node),))
        found.append(problem_with(observe_core(snapshot, item)))
    return against(*found)


def required(key: str, *values: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms
            }
        }
    }


NODES: dict[str, Callable[[], Broken]] = {
    "nodePinned": lambda: against(
        problem_with(world()),
        problem_with(world(gangs=(gang_of(node_name=NodeName("m")),))),
    ),
    "nodeSelected": lambda: fitting(
        node("n", labels={"zone": "a"}), node("n"), node_selector={"zone": "a"}
    ),
    "nodeAffinity": lambda: fitting(
        node("n", labels={"zone": "a"}),
        node("n", labels={"zone": "b"}),
        affinity=required("zone", "a"),
    ),
    "nodeTolerated": lambda: fitting(
        node("n"), node("n", taints=(NodeTaint(key="k", effect="NoExecute"),))
    ),
    "nodeSchedulable": lambda: fitting(node("n"), node("n", unschedulable=True)),
    "extendedResource": offered,
    "nodeFeatures": lambda: fitting(
        node("n", features=[HOST_USERS]), node("n"), features=(HOST_USERS,)
    ),
    "nodeSuffices": lambda: fitting(
        node("n"), node("n", allocatable={"cpu": "1500m"}), resources={"cpu": 2}
    ),
}


OPAQUE = OpaqueDeviceConfiguration(
    driver=DriverName(DRIVER), parameters={"mode": "fast"}
)

CONFIGURED = structs.replace(
    member_claim(),
    spec=claim_spec(
        request("one"),
        request("two"),
        config=(DeviceConfiguration(requests=("one",), opaque=OPAQUE),),
    ),
)

TOLERANT = gang_of(member_claim(request(tolerations=(toleration(),))))


def with_more_config(allocation: Any) -> Any:
    more = DeviceAllocationConfiguration(source="FromClaim")
    inner = structs.replace(allocation.devices, config=(more,))
    return structs.replace(allocation, devices=inner)


def one_share_id() -> Broken:
    made = problem_with(world(shared_device("10Gi"), gangs=TWO_PODS))
    decision = allocate(made)
    pod = decision.gangs[1].members[0]
    (taken,) = pod.claims[0].allocation.devices.results
    return made, with_result(decision, share_id=taken.share_id)


def other_requests(allocation: Any) -> Any:
    (item,) = allocation.devices.config
    config = (structs.replace(item, requests=("two",)),)
    inner = structs.replace(allocation.devices, config=config)
    return structs.replace(allocation, devices=inner)


RESULTS: dict[str, Callable[[], Broken]] = {
    "adminWritten": lambda: result_changed(
        world(gangs=(gang_of(member_claim(request(admin_access=True))),)),
        admin_access=None,
    ),
    "tolerationsWritten": lambda: result_changed(
        world(gangs=(gang_of(member_claim(request(tolerations=(toleration(),)))),)),
        tolerations=(),
    ),
    "shareId": lambda: result_changed(
        world(shared_device("10Gi"), gangs=TWO_PODS[:1]), share_id=None
    ),
    "consumedWritten": lambda: result_changed(
        world(shared_device("10Gi"), gangs=TWO_PODS[:1]), consumed_capacity={}
    ),
    "bindingWritten": lambda: result_changed(world(BINDING), binding_conditions=()),
    "operationsWritten": lambda: result_changed(
        sliced(device(), node="n"), skip_node_operations=("*",)
    ),
    "configWritten": lambda: allocation_changed(world(), with_more_config),
    "nodeSelectorWritten": lambda: allocation_changed(
        world(),
        lambda allocation: structs.replace(
            allocation, node_selector=node_name_selector("elsewhere")
        ),
    ),
    "shareId: a share id of another pod": one_share_id,
    "tolerationsWritten: another toleration": lambda: result_changed(
        world(gangs=(TOLERANT,)),
        tolerations=(ResultToleration(key="other", operator="Exists"),),
    ),
    "bindingWritten: dropped failure conditions": lambda: result_changed(
        world(BINDING), binding_failure_conditions=()
    ),
    "configWritten: configuration of another request": lambda: allocation_changed(
        world(*devices(2), gangs=(gang_of(CONFIGURED),)), other_requests
    ),
    "nodeSelectorWritten: a dropped node selector": lambda: allocation_changed(
        sliced(device(), node_selector=node_name_selector("n")),
        lambda allocation: structs.replace(allocation, node_selector=None),
    ),
}


WATCH_AND_WORK = gang_of(
    member_claim(request(admin_access=True), name="watch"),
    member_claim(request(), name="work"),
)


def late_work() -> Broken:
    made = problem_with(world(*devices(2), gangs=(WATCH_AND_WORK,)))
    decision = allocate(made)
    pod = decision.gangs[0].members[0]
    (seen,) = pod.claims[0].allocation.devices.results
    work = pod.claims[1]
    (worked,) = work.allocation.devices.results
    inner = structs.replace(
        work.allocation.devices, results=(structs.replace(worked, device=seen.device),)
    )
    claim = structs.replace(
        work, allocation=structs.replace(work.allocation, devices=inner)
    )
    claims = (pod.claims[0], claim)
    return made, with_member(decision, lambda pod: structs.replace(pod, claims=claims))


def drawn(memory: str, *drawing: Device) -> Problem:
    """Make a gang that asks for both of two devices, which draw from this memory."""
    both = gang_of(member_claim(request(count=2)))
    made = world(*drawing, counters=counters(memory), gangs=(both,))
    return problem_with(made, ON)


HALVES = [device_drawing(name, "40Gi") for name in "ab"]


SHARED: dict[str, Callable[[], Broken]] = {
    "capacitySuffices": lambda: against(
        problem_with(world(shared_device("10Gi"), gangs=TWO_PODS)),
        problem_with(world(shared_device("7Gi", "7Gi"), gangs=TWO_PODS)),
    ),
    "countersSuffice": lambda: against(drawn("80Gi", *HALVES), drawn("60Gi", *HALVES)),
    "groupsAgree": lambda: against(
        *(
            drawn(
                "80Gi",
                device_drawing("a", "1Gi", "one"),
                device_drawing("b", "1Gi", group),
            )
            for group in ("one", "two")
        )
    ),
    "adminOrder": late_work,
}


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
def test_a_changed_decision_breaks_a_rule(rule: str) -> None:
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


GANGS: dict[str, Callable[[], Broken]] = {
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


BROKEN = DEVICES | NODES | RESULTS | SHARED | GANGS


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    """A device, node, result or share that may not be is refused by that rule."""
    assert rule.partition(":")[0] in rules_broken(BROKEN[rule]())
