"""Counted resources that nobody offers are named, and never passed by."""

from __future__ import annotations

from typing import Any, cast

from contracts.workload import Node, Pod
from moorings.plan.counted import find_unoffered, refuse_unoffered
from moorings.plan.pods import PlannedPod
from tests.builders.inputs import entry, written_pod

GPU = "nvidia.com/gpu"


def planned(**spec: Any) -> PlannedPod:
    """Make a pod of one container that asks for a GPU."""
    raw = written_pod("p", **spec)
    raw["spec"]["containers"] = [
        {"name": "c", "resources": {"limits": {GPU: "1", "cpu": "1"}}}
    ]
    return PlannedPod(pod=cast("Pod", entry(raw).decoded.value), place=0)


def node(amount: str) -> Node:
    """Make a node with so many GPUs."""
    raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "8", GPU: amount}},
    }
    return cast("Node", entry(raw).decoded.value)


def test_what_a_class_or_a_node_offers_is_known() -> None:
    pod = planned()
    uid = pod.pod.metadata.uid
    assert find_unoffered([pod], frozenset(), []) == {uid: frozenset({GPU})}
    assert find_unoffered([pod], frozenset(), [node("0")]) == {uid: frozenset({GPU})}
    assert find_unoffered([pod], frozenset(), [node("1")]) == {}
    assert find_unoffered([pod], frozenset({GPU}), []) == {}


def test_pods_that_run_ask_for_nothing_any_more() -> None:
    assert find_unoffered([planned(nodeName="n")], frozenset(), []) == {}


def test_a_refused_pod_says_which_resource() -> None:
    pod = planned()
    kept, (refused,) = refuse_unoffered([pod], find_unoffered([pod], frozenset(), []))
    assert kept == []
    assert str(refused.reason) == (
        f"UnknownDeviceClass (p): no DeviceClass of the input serves {GPU}, and no "
        "Node of the input says that it has it"
    )
