"""The view is filled object by object, and one that cannot be read stops nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from contracts.codec import to_builtins
from contracts.names import ALLOCATE, IMMEDIATE
from contracts.workload import Pod
from publisher.cluster.observer import Observer
from publisher.gangs.view import GroupKey, group_of_claim
from publisher.kube.changes import Change, ChangePage
from runtime.kube.kinds import RESOURCE_CLAIM
from runtime.kube.lenient import ALTERED
from tests import builders
from tests.builders.plans import NOW, TRAIN
from tests.builders.pods import real_claim, refused_pod, waiting_pod

KEY = f"{builders.NAMESPACE}/a"


class Told:
    """An observer, and the groups that it told of."""

    def __init__(self) -> None:
        self.groups: list[set[GroupKey]] = []
        self.observer = Observer(RESOURCE_CLAIM, self._changed, now=lambda: NOW)

    async def _changed(self, groups: Iterable[GroupKey]) -> None:
        self.groups.append(set(groups))

    async def take(self, *changes: Change) -> None:
        """Take a page of changes."""
        await self.observer.take(ChangePage(changes, synced=True))


def raw_of(pod: Pod) -> dict[str, Any]:
    """Make a pod as an API server has it."""
    body = cast("dict[str, Any]", to_builtins(pod))
    return {"apiVersion": "v1", "kind": "Pod", **body}


POD = raw_of(waiting_pod("a", gang="train"))


async def test_a_page_is_told_of_at_once() -> None:
    """Each group once, and none where nothing changed."""
    told = Told()
    other = raw_of(waiting_pod("b", gang="train"))
    await told.take(
        Change("Pod", KEY, POD), Change("Pod", f"{builders.NAMESPACE}/b", other)
    )
    assert told.groups == [{TRAIN}]
    await told.take(Change("Node", "node-1", None))
    assert told.groups == [{TRAIN}]


async def test_what_was_applied_comes_twice_and_is_told_once() -> None:
    """The watch says again what our write was answered with."""
    told = Told()
    uid = POD["metadata"]["uid"]
    assert told.observer.apply("Pod", KEY, POD, uid) == {TRAIN}
    assert told.observer.apply("Pod", KEY, POD, uid) == frozenset()
    newer = raw_of(waiting_pod("a", gang="train", version=2))
    assert told.observer.apply("Pod", KEY, newer, uid) == {TRAIN}


async def test_an_object_that_cannot_be_read_is_left_out() -> None:
    """Those beside it are taken in."""
    told = Told()
    broken = {**POD, "spec": {"containers": "none"}}
    bad = Change("Pod", f"{builders.NAMESPACE}/z", broken)
    await told.take(bad, Change("Pod", KEY, POD))
    assert told.groups == [{TRAIN}]
    assert told.observer.view.pod(f"{builders.NAMESPACE}/z") is None


async def test_the_status_of_a_gang_is_kept_while_it_is_there() -> None:
    """Who writes statuses compares with it."""
    told = Told()
    key = f"{builders.NAMESPACE}/train"
    gang = {
        "apiVersion": "moorings.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": "train", "namespace": builders.NAMESPACE, "uid": "g"},
        "spec": {"members": [{"name": "worker"}]},
        "status": {"phase": "Pending"},
    }
    assert told.observer.apply("Gang", key, gang, "g") == {TRAIN}
    assert told.observer.statuses == {key: {"phase": "Pending"}}
    told.observer.apply("Gang", key, None, "g")
    assert told.observer.statuses == {}


async def test_a_node_is_another_one_when_anything_of_it_changed() -> None:
    """Its heartbeat is not: that is what changes all the time."""
    observer = Told().observer
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}}
    beating = {**node, "status": {"nodeInfo": {"bootID": "x"}}}
    tainted = {**node, "spec": {"taints": [{"key": "down", "effect": "NoSchedule"}]}}
    states = []
    for raw in (node, beating, tainted):
        observer.apply("Node", "n", raw, "")
        states.append(observer.view.nodes.state("n"))
    assert states[0] == states[1] != states[2]


async def test_since_when_a_pod_is_refused_is_what_was_seen() -> None:
    observer = Told().observer
    pod = refused_pod("a", "n", gang="train")
    observer.apply("Pod", KEY, raw_of(pod), pod.metadata.uid)
    assert observer.refusals.since(pod.metadata.uid) == NOW
    observer.apply("Pod", KEY, None, pod.metadata.uid)
    assert observer.refusals.since(pod.metadata.uid) == ""


async def test_what_cannot_be_read_holds_up_who_depends_on_it_alone() -> None:
    """By what was known of it before nothing is decided; then it can be read again."""
    told = Told()
    pod = raw_of(waiting_pod("a", gang="train", templates=["gpus"]))
    other = raw_of(waiting_pod("b", gang="other"))
    key = f"{builders.NAMESPACE}/a-gpus"
    body = cast("dict[str, Any]", to_builtins(real_claim("a-gpus")))
    body |= {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}

    def version(number: int, **more: Any) -> dict[str, Any]:
        return {
            **body,
            **more,
            "metadata": {**body["metadata"], "resourceVersion": str(number)},
        }

    await told.take(Change("Pod", KEY, pod), Change("Pod", f"{KEY}b", other))
    await told.take(Change("ResourceClaim", key, version(2)))
    assert told.observer.find_unreadable(TRAIN) == ""
    for unreadable in (version(3, spec=7), version(4, **{ALTERED: "too deep"})):
        await told.take(Change("ResourceClaim", key, unreadable))
        assert told.groups[-1] == {TRAIN}
        assert told.observer.find_unreadable(TRAIN).startswith(f"ResourceClaim {key}: ")
        assert told.observer.find_unreadable(GroupKey(TRAIN.namespace, "other")) == ""
    await told.take(Change("ResourceClaim", key, version(5)))
    assert told.observer.find_unreadable(TRAIN) == ""
    # A claim that is allocated without a pod is a group itself.
    alone = group_of_claim(key)
    meta = {**body["metadata"], "labels": {ALLOCATE: IMMEDIATE}}
    for number, more in ((6, {}), (7, {"spec": 7})):
        labelled = {**meta, "resourceVersion": str(number)}
        made = {**body, **more, "metadata": labelled}
        await told.take(Change("ResourceClaim", key, made))
        assert told.groups[-1] == {TRAIN, alone}
    assert told.observer.find_unreadable(alone).startswith(f"ResourceClaim {key}: ")
