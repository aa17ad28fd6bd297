"""Pods that are meant for us and are not at our gate are known by their group."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.names import GANG_UID, GATE
from contracts.workload import Pod, PodSchedulingGate
from publisher.gangs.view import GroupKey, View
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.values import NAMESPACE

TRAIN, LONE = GroupKey(NAMESPACE, "train"), GroupKey(NAMESPACE, "a", lone=True)


def stray(*gates: str, name: str = "a", **fields: Any) -> Pod:
    """Make a pod at other gates than ours, or at none."""
    pod = waiting_pod(name, **fields)
    others = tuple(PodSchedulingGate(name=gate) for gate in gates)
    return replace(pod, spec=replace(pod.spec, scheduling_gates=others))


def seeing(*pods: Pod, allocates_alone: bool = False) -> View:
    view = View(allocates_alone=allocates_alone)
    for pod in pods:
        view.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
    return view


@pytest.mark.parametrize(
    ("pod", "group"),
    [
        (stray(gang="train"), TRAIN),
        (stray("example.com/staged", gang="train"), TRAIN),
        (stray("moorings.dev/gang", gang="train"), TRAIN),
        (stray("mooring.dev/allocation"), LONE),
        (stray(labels={"mooring.dev/gang": "train"}), LONE),
        (stray(annotations={"moorings.dev/topolgy": "[]"}), LONE),
        (stray(gang="train", node="n1", phase="Running"), TRAIN),
    ],
)
def test_a_label_or_a_misspelt_gate_makes_it_one(pod: Pod, group: GroupKey) -> None:
    """It is of its group, and nothing is decided for it."""
    view = seeing(pod)
    assert view.strays.of(group) == (pod,)
    assert view.has_group(group)
    assert not view.pods(group)
    assert not list(view.groups())


@pytest.mark.parametrize(
    "pod",
    [
        stray(),
        stray("example.com/staged"),
        stray(labels={"ray.io/cluster": "train"}),
        stray(GATE, "moorings.dev/gang", gang="train"),
        stray(gang="train", annotations={GANG_UID: "uid"}),
        stray(gang="train", phase="Succeeded"),
        stray(gang="train", deleting=True),
        stray(templates=["gpus"]),
    ],
)
def test_others_are_not(pod: Pod) -> None:
    """Who is at our gate, or was, is ours; what is over needs no advice."""
    assert not list(seeing(pod).strays.groups())


def test_a_claim_makes_it_one_where_we_alone_allocate() -> None:
    """Until it is on a node: then somebody has allocated it."""
    pod = stray(templates=["gpus"])
    view = seeing(pod, allocates_alone=True)
    assert view.strays.of(LONE) == (pod,)
    claim = real_claim("a-gpus", managed=False)
    assert view.apply_claim(f"{NAMESPACE}/a-gpus", claim) == {LONE}
    there = stray(templates=["gpus"], node="n1", phase="Running", version=2)
    assert view.apply_pod(f"{NAMESPACE}/a", there) == {LONE}
    assert not view.has_group(LONE)


def test_it_is_forgotten_once_it_is_gone_or_ours() -> None:
    """Of several those that are left stay."""
    pods = [stray(name=name, gang="train") for name in "ab"]
    view = seeing(*reversed(pods))
    assert view.strays.of(TRAIN) == tuple(pods)
    assert view.apply_pod(f"{NAMESPACE}/a", None) == {TRAIN}
    assert view.strays.of(TRAIN) == (pods[1],)
    gated = waiting_pod("b", gang="train", uid="new", version=2)
    view.apply_pod(f"{NAMESPACE}/b", gated)
    assert not list(view.strays.groups())
    assert view.pods(TRAIN) == (gated,)


def test_pods_of_the_cluster_itself_are_left_alone() -> None:
    view = View()
    pod = stray(gang="train")
    meta = replace(pod.metadata, namespace="kube-system")
    assert not view.strays.is_one(replace(pod, metadata=meta))
