"""The judge refuses what breaks one rule of an optional feature, by that rule's name.

A decision is made for one Problem and then broken, or held against a Problem that
differs in the one thing that the rule is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import solver.judge.rules
from contracts.allocation import DeviceAllocationConfiguration
from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
)
from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import NodeName
from contracts.messages import ObjectObserved
from contracts.quantity import Quantity
from contracts.workload import Node, NodeTaint
from solver.allocate import allocate
from solver.decision import Decision
from solver.judge.rules import judge
from solver.problem.problem import Problem
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DEVICE_CLASS,
    DRIVER,
    constraint,
    counter_set,
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
    toleration,
)
from tests.builders.problems import (
    CLUSTER,
    PARAMETERS,
    observe,
    observe_core,
    problem_of,
    snapshot_of,
)
from tests.unit.solver.judge import test_rules

ON = Features(list_type_attributes=True, compatibility_groups=True)
Broken = tuple[Problem, Decision]


def asked(*claims: Any, number: int = 1, **more: Any) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    return gang(member(*claims, **more), name=f"g{number}", uid=uid)


def problem(
    snapshot: Snapshot,
    features: Features = Features(),  # noqa: B008  # frozen
) -> Problem:
    return problem_of(snapshot, structs.replace(PARAMETERS, features=features))


def world(*content: Device, gangs: tuple[Gang, ...] = (), **fields: Any) -> Snapshot:
    return snapshot_of({"n": [pool(*content, name="n", **fields)]}, gangs or [asked()])


def sliced(*content: Device, gangs: tuple[Gang, ...] = (), **fields: Any) -> Snapshot:
    item = resource_slice(*content, name="s", pool="n", **fields)
    base = snapshot_of({"n": []}, gangs or [asked()])
    return observe(base, "s", item)


def with_result(decision: Decision, index: int = 0, **fields: Any) -> Decision:
    """Change one result of the first claim of the first pod."""

    def change(allocation: Any) -> Any:
        results = list(allocation.devices.results)
        results[index] = structs.replace(results[index], **fields)
        inner = structs.replace(allocation.devices, results=tuple(results))
        return structs.replace(allocation, devices=inner)

    return with_allocation(decision, change)


def with_allocation(decision: Decision, change: Callable[[Any], Any]) -> Decision:
    first, *gangs = decision.gangs
    pod, *pods = first.members
    claim, *claims = pod.claims
    claim = structs.replace(claim, allocation=change(claim.allocation))
    pod = structs.replace(pod, claims=(claim, *claims))
    changed = structs.replace(first, members=(pod, *pods))
    return structs.replace(decision, gangs=(changed, *gangs))


def against(decided: Problem, held: Problem) -> Broken:
    return held, allocate(decided)


def changed(snapshot: Snapshot, index: int = 0, **fields: Any) -> Broken:
    made = problem(snapshot)
    return made, with_result(allocate(made), index, **fields)


def drawing(name: str, memory: str, *groups: str) -> Device:
    item = device(name, consumes={"gpu": {"memory": memory}})
    consumption = structs.replace(
        item.consumes_counters[0], compatibility_groups=groups or None
    )
    return structs.replace(item, consumes_counters=(consumption,))


def counters(memory: str) -> list[Any]:
    return [counter_set("gpu", memory=memory)]


def shared(total: str, most: str = "8Gi") -> Device:
    span = CapacityRequestPolicyRange(
        min=Quantity.parse("1Gi"), max=Quantity.parse(most)
    )
    policy = CapacityRequestPolicy(default=Quantity.parse("1Gi"), valid_range=span)
    capacity = DeviceCapacity(value=Quantity.parse(total), request_policy=policy)
    return device(capacity={"memory": capacity}, allow_multiple_allocations=True)


FOUR = member_claim(request(capacity={"memory": "4Gi"}))
TWO_PODS = (asked(FOUR, number=1), asked(FOUR, number=2))
WATCH_AND_WORK = asked(
    member_claim(request(admin_access=True), name="watch"),
    member_claim(request(), name="work"),
)


def late_work() -> Broken:
    made = problem(world(*devices(2), gangs=(WATCH_AND_WORK,)))
    decision = allocate(made)
    pod = decision.gangs[0].members[0]
    (seen,) = pod.claims[0].allocation.devices.results
    work = pod.claims[1]
    (worked,) = work.allocation.devices.results
    inner = structs.replace(
        work.allocation.devices,
        results=(structs.replace(worked, device=seen.device),),
    )
    claim = structs.replace(
        work, allocation=structs.replace(work.allocation, devices=inner)
    )
    pod = structs.replace(pod, claims=(pod.claims[0], claim))
    first = structs.replace(decision.gangs[0], members=(pod,))
    return made, structs.replace(decision, gangs=(first,))


def too_many() -> Broken:
    everything = asked(member_claim(request(mode="All")))
    few = problem(world(*devices(32), gangs=(everything,)))
    many = problem(world(*devices(33), gangs=(everything,)))

    def add(allocation: Any) -> Any:
        results = allocation.devices.results
        more = structs.replace(results[0], device="gpu-32")
        inner = structs.replace(allocation.devices, results=(*results, more))
        return structs.replace(allocation, devices=inner)

    return many, with_allocation(allocate(few), add)


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
    return against(problem(before), problem(apply(after, plugin)))


def fitting(node_before: Node, node_after: Node, **asked_of_node: Any) -> Broken:
    """Decide with one Node, and judge with another."""
    found = []
    for item in (node_before, node_after):
        snapshot = world(*devices(2), gangs=(asked(**asked_of_node),))
        found.append(problem(observe_core(snapshot, item)))
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


def config(allocation: Any) -> Any:
    more = DeviceAllocationConfiguration(source="FromClaim")
    inner = structs.replace(allocation.devices, config=(more,))
    return structs.replace(allocation, devices=inner)


def decided(snapshot: Snapshot, change: Callable[[Any], Any]) -> Broken:
    made = problem(snapshot)
    return made, with_allocation(allocate(made), change)


def changed_features(snapshot: Snapshot, features: Features, **fields: Any) -> Broken:
    made = problem(snapshot, features)
    return made, with_result(allocate(made), **fields)


def without_admin() -> Broken:
    watch = asked(member_claim(request(admin_access=True)))
    made = problem(world(gangs=(watch,)))
    off = structs.replace(made.parameters, features=Features(admin_access=False))
    return Problem(made.pages, made.gangs, made.selectors, off), allocate(made)


BINDING = device(binding_conditions=("ready",), binding_failure_conditions=("bad",))
BROKEN: dict[str, Callable[[], Broken]] = {
    "adminAccess": without_admin,
    "adminOrder": late_work,
    "adminWritten": lambda: changed(
        world(gangs=(asked(member_claim(request(admin_access=True))),)),
        admin_access=None,
    ),
    "attributePresent": lambda: changed(
        world(
            device("a", attributes={"numa": 1}),
            device("b"),
            gangs=(
                asked(
                    member_claim(request(), constraints=[constraint(f"{DRIVER}/numa")])
                ),
            ),
        ),
        device="b",
    ),
    "bindingConditions": lambda: against(
        problem(world(BINDING)), problem(world(BINDING), Features(device_binding=False))
    ),
    "bindingWritten": lambda: changed(world(BINDING), binding_conditions=()),
    "capacityPolicy": lambda: against(
        problem(world(shared("10Gi"), gangs=TWO_PODS[:1])),
        problem(world(shared("10Gi", "2Gi"), gangs=TWO_PODS[:1])),
    ),
    "capacitySuffices": lambda: against(
        problem(world(shared("10Gi"), gangs=TWO_PODS)),
        problem(world(shared("7Gi", "7Gi"), gangs=TWO_PODS)),
    ),
    "claimLimit": too_many,
    "configWritten": lambda: decided(world(), config),
    "consumedWritten": lambda: changed(
        world(shared("10Gi"), gangs=TWO_PODS[:1]), consumed_capacity={}
    ),
    "countersSuffice": lambda: against(
        problem(
            world(
                drawing("a", "40Gi"),
                drawing("b", "40Gi"),
                counters=counters("80Gi"),
                gangs=(asked(member_claim(request(count=2))),),
            )
        ),
        problem(
            world(
                drawing("a", "40Gi"),
                drawing("b", "40Gi"),
                counters=counters("60Gi"),
                gangs=(asked(member_claim(request(count=2))),),
            )
        ),
    ),
    "devicesDiffer": lambda: changed(
        world(*devices(2), gangs=(asked(member_claim(request(count=2))),)),
        device="gpu-1",
    ),
    "extendedResource": offered,
    "groupsAgree": lambda: against(
        problem(
            world(
                drawing("a", "1Gi", "one"),
                drawing("b", "1Gi", "one"),
                counters=counters("80Gi"),
                gangs=(asked(member_claim(request(count=2))),),
            ),
            ON,
        ),
        problem(
            world(
                drawing("a", "1Gi", "one"),
                drawing("b", "1Gi", "two"),
                counters=counters("80Gi"),
                gangs=(asked(member_claim(request(count=2))),),
            ),
            ON,
        ),
    ),
    "nodeAffinity": lambda: fitting(
        node("n", labels={"zone": "a"}),
        node("n", labels={"zone": "b"}),
        affinity=required("zone", "a"),
    ),
    "nodeSchedulable": lambda: fitting(node("n"), node("n", unschedulable=True)),
    "nodeSelected": lambda: fitting(
        node("n", labels={"zone": "a"}), node("n"), node_selector={"zone": "a"}
    ),
    "nodeSuffices": lambda: fitting(
        node("n"), node("n", allocatable={"cpu": "1500m"}), resources={"cpu": 2}
    ),
    "nodeTolerated": lambda: fitting(
        node("n"), node("n", taints=(NodeTaint(key="k", effect="NoExecute"),))
    ),
    "nodeOperations": lambda: against(
        problem(sliced(device(), node="n", skip_node_operations=("*",))),
        problem(sliced(device(), node="n", skip_node_operations=("*",)), ON),
    ),
    "nodePinned": lambda: against(
        problem(world()), problem(world(gangs=(asked(node_name=NodeName("m")),)))
    ),
    "nodeSelectorWritten": lambda: decided(
        world(),
        lambda allocation: structs.replace(
            allocation, node_selector=node_name_selector("elsewhere")
        ),
    ),
    "partitionable": lambda: changed_features(
        sliced(device("a"), drawing("b", "1Gi"), node="n"),
        Features(partitionable_devices=False),
        device="b",
    ),
    "reachable": lambda: changed(
        sliced(
            device("a", node_name=NodeName("n")),
            device("b", node_name=NodeName("m")),
            per_device_node_selection=True,
        ),
        device="b",
    ),
    "operationsWritten": lambda: changed(
        sliced(device(), node="n"), skip_node_operations=("*",)
    ),
    "requestKnown": lambda: changed(world(), request="other"),
    "shareId": lambda: changed(
        world(shared("10Gi"), gangs=TWO_PODS[:1]), share_id=None
    ),
    "tolerationsWritten": lambda: changed(
        world(gangs=(asked(member_claim(request(tolerations=(toleration(),)))),)),
        tolerations=(),
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    held, decision = BROKEN[rule]()
    assert any(item.members for item in decision.gangs)
    found = {violation.partition(":")[0] for violation in judge(held, decision)}
    assert rule in found


def test_every_rule_of_the_judge_is_broken_somewhere() -> None:
    folder = Path(solver.judge.rules.__file__).parent
    named = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(r'f?"([a-z][A-Za-z]+): ', path.read_text())
    }
    assert len(named) > 30
    assert named <= BROKEN.keys() | test_rules.MUTATIONS.keys()
