"""Trees of Kubernetes' PodGroups (KEP-6012), and the gangs that they are.

What each is was written by hand: by gang the members, each with its pods and with how
many are enough; its rules of topology; and why the pods that are of none wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from contracts.gang import Gang
from contracts.gang_rules import GangTopology
from tests.cases.published import TEMPLATE, Gangs, Json, list_gangs

API = "scheduling.k8s.io/v1beta1"
RACK, BLOCK = "topology.example.com/rack", "topology.example.com/block"
AGAIN = ", again"
"""Ends the name of a gang where another has it."""


class Tree(Struct, kw_only=True):
    """Groups with their pods, and what they are."""

    objects: list[Json]
    gangs: Gangs = {}
    topology: tuple[GangTopology, ...] = ()
    """Of all gangs together."""
    reasons: tuple[str, ...] = ()
    """Why pods wait that are of no gang."""


def _group(kind: str, name: str, spec: Json) -> Json:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"{kind}-{name}"},
        "spec": spec,
    }


def _rules(topology: str) -> Json:
    topologies = {"topology": [{"key": topology}]}
    return {"schedulingConstraints": topologies} if topology else {}


def composite(
    name: str, least: int | None, *, parent: str = "", topology: str = "", **more: Any
) -> Json:
    """Make a group of groups that needs so many of them; None: it is no gang."""
    policy: Json = (
        {"basic": {}} if least is None else {"gang": {"minGroupCount": least}}
    )
    spec = {
        "workloadRef": {"workloadName": "w", "templateName": name},
        "schedulingPolicy": policy,
        **({"parentCompositePodGroupName": parent} if parent else {}),
        **_rules(topology),
        **more,
    }
    return _group("CompositePodGroup", name, spec)


def pod_group(
    name: str,
    least: int | None,
    *,
    parent: str = "",
    topology: str = "",
    workload: str = "w",
    **more: Any,
) -> Json:
    """Make a group that needs so many pods; None: it is no gang."""
    policy: Json = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    spec = {
        "workloadRef": {"workloadName": workload, "templateName": name},
        "schedulingPolicy": policy,
        **({"parentCompositePodGroupName": parent} if parent else {}),
        **_rules(topology),
        **more,
    }
    return _group("PodGroup", name, spec)


def pods(group: str, count: int) -> list[Json]:
    """Make pods of a PodGroup."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{group}-{number}", "namespace": "default"},
            "spec": TEMPLATE["spec"] | {"schedulingGroup": {"podGroupName": group}},
        }
        for number in range(count)
    ]


def leaf(name: str, count: int, least: int | None = None, **more: Any) -> list[Json]:
    """Make a PodGroup of a gang and its pods, of which it needs `least`, or all."""
    return [pod_group(name, least or count, **more), *pods(name, count)]


def job(name: str, scheduling: Json, count: int) -> Json:
    """Make a Job whose pods are scheduled by its `scheduling` (KEP-5547)."""
    said = {"scheduling": scheduling} if scheduling else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "uid": f"Job-{name}"},
        "spec": {"parallelism": count, "template": TEMPLATE, **said},
    }


def made_by_job(name: str, objects: Iterable[Json]) -> list[Json]:
    """Make a Job the controller of a PodGroup and of its pods."""
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": f"Job-{name}",
        "controller": True,
    }
    return [
        {**each, "metadata": each["metadata"] | {"ownerReferences": [owner]}}
        for each in objects
    ]


FOR_TWO: Json = {"gang": {"minCount": 2}}
PREFILL_AND_DECODE: Gangs = {"x": [("decode", 3, 3), ("prefill", 2, 2)]}
TREES = {
    "all groups are needed": Tree(
        objects=[
            composite("x", 2),
            *leaf("prefill", 2, parent="x"),
            *leaf("decode", 3, parent="x"),
        ],
        gangs=PREFILL_AND_DECODE,
    ),
    "topology by level": Tree(
        objects=[
            composite("x", 2, topology=BLOCK),
            *leaf("prefill", 2, parent="x", topology=RACK),
            *leaf("decode", 3, parent="x"),
        ],
        gangs=PREFILL_AND_DECODE,
        topology=(
            GangTopology(key=BLOCK),
            GangTopology(key=RACK, members=("prefill",)),
        ),
    ),
    "three levels": Tree(
        objects=[
            composite("x", 2, topology="zone"),
            composite("x-0", 2, parent="x", topology=BLOCK),
            composite("x-1", 1, parent="x"),
            *leaf("a", 1, parent="x-0"),
            *leaf("b", 2, parent="x-0", topology=RACK),
            *leaf("c", 1, parent="x-1"),
        ],
        gangs={"x": [("a", 1, 1), ("b", 2, 2), ("c", 1, 1)]},
        topology=(
            GangTopology(key="zone"),
            GangTopology(key=BLOCK, members=("a", "b")),
            GangTopology(key=RACK, members=("b",)),
        ),
    ),
    "a group with more pods than it needs": Tree(
        objects=[
            composite("x", 2),
            *leaf("prefill", 4, 2, parent="x"),
            *leaf("decode", 3, parent="x"),
        ],
        gangs={"x": [("decode", 3, 3), ("prefill", 4, 2)]},
    ),
    "more groups than it needs: it begins with the first": Tree(
        objects=[
            composite("x", 2, topology=BLOCK),
            *leaf("r-2", 2, parent="x", topology=RACK),
            *leaf("r-10", 2, parent="x", topology=RACK),
            *leaf("r-1", 2, parent="x", topology=RACK),
        ],
        gangs={"x": [("r-1", 2, 2), ("r-2", 2, 2)]},
        topology=(
            GangTopology(key=BLOCK),
            GangTopology(key=RACK, members=("r-1",)),
            GangTopology(key=RACK, members=("r-2",)),
        ),
        reasons=("Growing: 4 more wait already, and these come once the gang runs",),
    ),
    "more groups than it needs, of which the first is not whole": Tree(
        objects=[
            composite("x", 1),
            pod_group("r-0", 2, parent="x"),
            *pods("r-0", 1),
            *leaf("r-1", 2, parent="x"),
        ],
        gangs={"x": [("r-1", 2, 2)]},
        reasons=("Growing: 2 more wait already, and these come once the gang runs",),
    ),
    "a group is not whole": Tree(
        objects=[
            composite("x", 2),
            *leaf("prefill", 2, parent="x"),
            pod_group("decode", 3, parent="x"),
            *pods("decode", 1),
        ],
        reasons=("1 of 2 groups of x are whole (1 of 3 pods decode are there)",),
    ),
    "a group is not made": Tree(
        objects=[composite("x", 2), *leaf("prefill", 2, parent="x")],
        reasons=("1 of 2 groups of x are whole",),
    ),
    "groups of which each is decided by itself": Tree(
        objects=[
            composite("x", None),
            *leaf("prefill", 2, parent="x", topology=RACK),
            *leaf("decode", 3, parent="x"),
        ],
        gangs={"prefill": [("pod", 2, 2)], "decode": [("pod", 3, 3)]},
        topology=(GangTopology(key=RACK),),
    ),
    "gangs of groups, of which each is decided by itself": Tree(
        objects=[
            composite("x", None),
            composite("x-0", 2, parent="x"),
            *leaf("a", 1, parent="x-0"),
            *leaf("b", 1, parent="x-0"),
            *leaf("c", 2, parent="x"),
        ],
        gangs={"x-0": [("a", 1, 1), ("b", 1, 1)], "c": [("pod", 2, 2)]},
    ),
    "nothing in it is a gang": Tree(
        objects=[composite("x", None), pod_group("a", None, parent="x"), *pods("a", 2)],
        gangs={"a": [("pod", 1, 1)], "a, again": [("pod", 1, 1)]},
    ),
    "a domain for gangs that are decided apart": Tree(
        objects=[
            composite("x", None, topology=BLOCK),
            *leaf("a", 1, parent="x"),
        ],
        reasons=(
            "CompositePodGroup x: spec.schedulingConstraints.topology: this version",
        ),
    ),
    "the root is not there": Tree(
        objects=[composite("x-0", 1, parent="x"), *leaf("a", 1, parent="x-0")],
        reasons=("CompositePodGroup default/x, which the publisher cannot see",),
    ),
    "the root above gangs of their own is not there": Tree(
        objects=[composite("x-0", None, parent="x"), *leaf("a", 1, parent="x-0")],
        reasons=("CompositePodGroup default/x, which the publisher cannot see",),
    ),
    "of two Workloads": Tree(
        objects=[composite("x", 1), *leaf("a", 1, parent="x", workload="v")],
        reasons=("PodGroup a is of Workload v, CompositePodGroup x of w",),
    ),
    "no gang in a gang": Tree(
        objects=[composite("x", 1), pod_group("a", None, parent="x"), *pods("a", 1)],
        reasons=(
            "PodGroup a has the policy basic in CompositePodGroup x of policy gang",
        ),
    ),
    "what ends alone in what ends as one": Tree(
        objects=[
            composite("x", 1, disruptionMode={"all": {}}),
            *leaf("a", 1, parent="x", disruptionMode={"single": {}}),
        ],
        reasons=("PodGroup a has the disruptionMode single in CompositePodGroup x",),
    ),
    "of two priorities": Tree(
        objects=[composite("x", 1, priority=7), *leaf("a", 1, parent="x", priority=0)],
        reasons=("pod a-0 has priority 0, CompositePodGroup x has 7",),
    ),
    "too deep": Tree(
        objects=[
            composite("x", 1),
            composite("y", 1, parent="x"),
            composite("z", 1, parent="y"),
            composite("deep", 1, parent="z"),
            *leaf("a", 1, parent="deep"),
        ],
        reasons=("CompositePodGroup deep is at level 4, where only PodGroups are",),
    ),
    "above itself": Tree(
        objects=[
            composite("x", 1, parent="y"),
            composite("y", 1, parent="x"),
            *leaf("a", 1, parent="x"),
        ],
        reasons=("is above itself",),
    ),
    "a Job's own PodGroup": Tree(
        objects=[
            job("train", {"schedulingPolicy": {"gang": {}}}, 2),
            *made_by_job("train", leaf("train-7f3a-x", 2)),
        ],
        gangs={"train": [("pod", 2, 2)]},
    ),
    "a Job of which fewer pods are enough": Tree(
        objects=[
            job("train", {"schedulingPolicy": FOR_TWO, **_rules(RACK)}, 4),
            *made_by_job("train", leaf("train-7f3a-x", 4, 2, topology=RACK)),
        ],
        gangs={"train": [("pod", 4, 2)]},
        topology=(GangTopology(key=RACK),),
    ),
    "a Job that says nothing gets a PodGroup that is no gang": Tree(
        objects=[
            job("train", {}, 2),
            *made_by_job("train", [pod_group("g", None), *pods("g", 2)]),
        ],
        gangs={"train": [("pod", 2, 2)]},
    ),
    "a Job that says that it is no gang": Tree(
        objects=[
            job("train", {"schedulingPolicy": {"basic": {}}}, 2),
            *made_by_job("train", [pod_group("g", None), *pods("g", 2)]),
        ],
        gangs={"train": [("pod", 1, 1)], "train, again": [("pod", 1, 1)]},
    ),
    "a Job before its PodGroup": Tree(
        objects=[job("train", {"schedulingPolicy": FOR_TWO}, 3)],
        gangs={"train": [("pod", 3, 2)]},
    ),
    "Jobs in a tree": Tree(
        objects=[
            composite("x", 2),
            *made_by_job("a", leaf("a-1", 2, parent="x")),
            *made_by_job("b", leaf("b-1", 1, parent="x")),
            job("a", {}, 2),
            job("b", {}, 1),
        ],
        gangs={"x": [("a-1", 2, 2), ("b-1", 1, 1)]},
    ),
}


def list_by_name(gangs: Iterable[Gang]) -> Gangs:
    """Describe gangs as the table does; pods alone have the name of their group."""
    found: Gangs = {}
    for gang in gangs:
        name = gang.metadata.name
        while name in found:
            name += AGAIN
        found |= {name: list_gangs([gang])[gang.metadata.name]}
    return found


def list_rules(gangs: Iterable[Gang]) -> tuple[GangTopology, ...]:
    """List the rules of topology of gangs."""
    return tuple(rule for gang in gangs for rule in gang.spec.topology)
