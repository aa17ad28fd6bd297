"""The judge knows which nodes a pod may be on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts.ids import NodeName
from contracts.messages import ObjectObserved
from contracts.workload import Node, NodeTaint
from solver.snapshot.snapshot import apply
from tests.builders import DEVICE_CLASS, devices, gang, member, node
from tests.builders.broken import (
    Broken,
    against,
    gang_of,
    problem_with,
    rules_broken,
    world,
)
from tests.builders.problems import CLUSTER, observe_core


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


BROKEN: dict[str, Callable[[], Broken]] = {
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
    "nodeSuffices": lambda: fitting(
        node("n"), node("n", allocatable={"cpu": "1500m"}), resources={"cpu": 2}
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    """A node that the pod may not be on is refused by that rule."""
    assert rule.partition(":")[0] in rules_broken(BROKEN[rule]())
