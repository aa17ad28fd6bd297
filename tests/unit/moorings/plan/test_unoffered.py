"""Extended resources that nobody offers are named, and never passed by."""

from __future__ import annotations

from typing import Any, cast

from contracts.workload import Node, Pod
from moorings.plan.cluster import make_cluster
from moorings.plan.pods import PlannedPod
from moorings.plan.unoffered import find_unoffered, refuse_unoffered
from tests.builders.inputs import entries, entry, written_node, written_pod

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


def test_a_node_that_does_not_say_what_it_has_offers_nothing() -> None:
    """It limits nothing, so it would take a pod for a resource that nobody offers."""
    asking = written_pod("p")
    asking["spec"]["containers"] = [{"name": "c", "resources": {"limits": {GPU: "1"}}}]
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}
    full = written_node("full")
    assert make_cluster(entries(full, asking)).waiting == ()
    (waiting,) = make_cluster(entries(full, bare, asking)).waiting
    assert waiting.reasons[0].rule == "UnknownDeviceClass"


def test_pods_that_run_ask_for_nothing_any_more() -> None:
    assert find_unoffered([planned(nodeName="n")], frozenset(), []) == {}


def test_a_refused_pod_says_which_resource() -> None:
    pod = planned()
    kept, (refused,) = refuse_unoffered([pod], find_unoffered([pod], frozenset(), []))
    assert kept == []
    assert str(refused.reason) == (
        f"UnknownDeviceClass (p): no DeviceClass of the input offers {GPU}, and no "
        "Node of the input reports it"
    )
