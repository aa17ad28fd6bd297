"""Pods that were bound without us are known while nobody allocates their claims."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.names import GANG, GANG_UID
from contracts.workload import Pod
from publisher.gangs.bypassed_pods import BypassedPods
from publisher.gangs.view import GroupKey, View
from tests import builders
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.values import NAMESPACE

POD_KEY, CLAIM_KEY = f"{NAMESPACE}/a", f"{NAMESPACE}/a-gpus"
LONE = GroupKey(NAMESPACE, "a", lone=True)
ALLOCATED = builders.allocation()


def bound(*, gang: str = "", **fields: Any) -> Pod:
    """Make a pod that was created with a node, and its claim `a-gpus`."""
    pod = waiting_pod("a", gang=gang, templates=["gpus"], node="n1", **fields)
    return replace(pod, spec=replace(pod.spec, scheduling_gates=()))


def seeing(*, owns: bool = True, owns_classes: bool = True) -> View:
    """Make a View that takes such pods."""
    bypassed = BypassedPods(lambda _: owns, owns_classes=owns_classes)
    return View(bypassed=bypassed)


@pytest.mark.parametrize(
    ("owns", "owns_classes", "gang", "is_ours"),
    [
        (True, True, "", True),
        # Where all classes are shared only a mark tells.
        (True, False, "", False),
        (True, False, "train", True),
        # Claims that are decided elsewhere are not ours to tell of.
        (False, True, "train", False),
    ],
)
def test_a_class_or_a_mark_makes_it_ours(
    owns: bool, owns_classes: bool, gang: str, is_ours: bool
) -> None:
    view = seeing(owns=owns, owns_classes=owns_classes)
    view.apply_claim(CLAIM_KEY, real_claim("a-gpus", managed=False))
    touched = view.apply_pod(POD_KEY, bound(gang=gang))
    assert (LONE in touched) is is_ours
    assert bool(view.pods(LONE)) is is_ours


def test_claim_and_pod_come_in_any_order() -> None:
    """The claim of a template is made after its pod."""
    view = seeing()
    assert view.apply_pod(POD_KEY, bound()) == frozenset()
    claim = real_claim("a-gpus", managed=False)
    assert view.apply_claim(CLAIM_KEY, claim) == {LONE}
    assert view.users(CLAIM_KEY) == view.pods(LONE)
    assert view.apply_pod(POD_KEY, None) == {LONE}
    assert not view.has_group(LONE)


@pytest.mark.parametrize(
    "pod",
    [
        bound(phase="Running"),
        bound(annotations={GANG_UID: "uid-of-ours"}),
        waiting_pod("a", templates=["gpus"]),
        waiting_pod("a", templates=["gpus"], opened_by="uid"),
    ],
)
def test_others_are_not_bypassed(pod: Pod) -> None:
    """What runs has its devices; who was at our gate is known."""
    bypassed = BypassedPods(lambda _: True, owns_classes=True)
    assert not bypassed.take(POD_KEY, pod, [real_claim("a-gpus")])
    assert not bypassed.has(pod)


def test_it_is_left_alone_once_others_have_allocated_its_claim() -> None:
    """Then kube-scheduler bound it, and its claim was only seen late."""
    view = seeing()
    view.apply_claim(CLAIM_KEY, real_claim("a-gpus", managed=False))
    view.apply_pod(POD_KEY, bound(gang="train"))
    theirs = real_claim("a-gpus", managed=False, allocated=ALLOCATED, version=2)
    assert view.apply_claim(CLAIM_KEY, theirs) >= {LONE}
    assert not view.has_group(LONE)
    assert view.ungated_users.has(CLAIM_KEY)


def test_it_stays_ours_while_we_manage_its_claim() -> None:
    """So that its gang ends with it, and not when it begins to run."""
    view = seeing()
    view.apply_claim(CLAIM_KEY, real_claim("a-gpus"))
    view.apply_pod(POD_KEY, bound(gang="train"))
    ours = real_claim("a-gpus", allocated=ALLOCATED, version=2)
    assert view.apply_claim(CLAIM_KEY, ours) == {LONE}
    for number, phase in enumerate(("Running", "Succeeded"), start=2):
        pod = bound(gang="train", phase=phase, version=number)
        assert view.apply_pod(POD_KEY, pod) == {LONE}
        assert view.pods(LONE) == (pod,)
    assert view.membership(bound(gang="train")).is_lone
    assert view.group_of(waiting_pod("b", gang="train")).name == "train"
    assert GANG in view.pods(LONE)[0].metadata.labels


def test_a_successor_of_its_name_is_another_pod() -> None:
    view = seeing()
    view.apply_claim(CLAIM_KEY, real_claim("a-gpus"))
    view.apply_pod(POD_KEY, bound())
    gated = waiting_pod("a", gang="train", templates=["gpus"], uid="new", version=9)
    assert view.apply_pod(POD_KEY, gated) >= {GroupKey(NAMESPACE, "train")}
    assert not view.has_group(LONE)
