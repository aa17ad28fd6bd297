"""An object that is given twice counts once, as it would be applied."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.kubernetes.decode import KubernetesObject
from contracts.workload import Node
from moorings.plan.objects import unite_objects
from tests import builders
from tests.builders.inputs import Json, entries, written_job, written_node, written_pod


def united(*objects: Any) -> tuple[list[KubernetesObject], list[str]]:
    """Unite objects; returns what each is, and the notes."""
    found, notes = unite_objects(entries(*objects))
    return [each.decoded.value for each in found], notes


def values(*objects: Json) -> list[KubernetesObject]:
    return [each.decoded.value for each in entries(*objects)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_pod_stays_as_the_cluster_has_it(order: int) -> None:
    """Whichever is read first: its spec never changes."""
    live = written_pod("a", live=True, nodeName="node-1")
    found, notes = united(*[live, written_pod("a")][::order])
    assert found == values(live)
    (note,) = notes
    assert note.startswith("Pod team-a/a: more than once in the input; a pod")


def test_of_two_versions_the_newer_counts() -> None:
    old, new = written_pod("a", live=True), written_pod("a", live=True)
    new["metadata"]["resourceVersion"] = "6"
    for pair in ((old, new), (new, old)):
        assert united(*pair)[0] == values(new)


def test_anything_else_is_as_it_is_written_last_with_what_the_cluster_wrote() -> None:
    live = written_job("train", 2)
    live["metadata"] |= {"uid": "u-1", "resourceVersion": "3"}
    live["status"] = {"active": 2}
    ((found,), _) = unite_objects(entries(live, written_job("train", 5)))
    job = found.raw
    assert job["spec"]["parallelism"] == 5
    assert (job["metadata"]["uid"], job["status"]) == ("u-1", {"active": 2})


@pytest.mark.parametrize("order", [1, -1])
def test_a_node_keeps_what_the_cluster_says_of_it(order: int) -> None:
    """Its labels are those that somebody is about to apply."""
    live = written_node("n", cpu=8)
    live["metadata"] |= {"uid": "u-1", "resourceVersion": "3"}
    written = written_node("n")
    written["metadata"]["labels"] = {"zone": "a"}
    del written["status"]
    ((node,), _) = united(*[live, written][::order])
    assert isinstance(node, Node)
    assert node.status.allocatable["cpu"].text == "8"
    assert (node.metadata.uid, node.metadata.labels) == ("u-1", {"zone": "a"})


def test_objects_are_told_apart_by_kind_namespace_and_pool() -> None:
    other = written_pod("a")
    other["metadata"]["namespace"] = "team-b"
    unsaid, default = written_pod("a"), written_pod("a")
    del unsaid["metadata"]["namespace"]
    default["metadata"]["namespace"] = "default"
    found, _ = united(written_pod("a"), written_job("a", 1), other, unsaid, default)
    assert len(found) == 4
    slices = (builders.resource_slice(name="s", pool=pool) for pool in ("x", "y", "x"))
    assert len(united(*slices)[0]) == 2


def test_a_generated_name_is_another_one_each_time() -> None:
    pods = [written_pod("", metadata={"generateName": "w-"}) for _ in range(2)]
    found, notes = united(*pods)
    assert [pod.metadata.name for pod in found] == ["w-00000", "w-00001"]
    assert notes == []
