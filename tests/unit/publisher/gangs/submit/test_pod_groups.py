"""Pods that kube-scheduler would never bind get no devices."""

from __future__ import annotations

from typing import Any

import pytest

from publisher.gangs.context import PlanContext
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.pod_groups import find_disagreement
from tests.builders.plans import context_about
from tests.builders.values import NAMESPACE
from tests.builders.workloads import Json, made_pod, view_of_workloads

SAME = "create it anew with equal values"


def pod_group(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": NAMESPACE, "uid": "uid-g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec},
    }


def looked_at(*specs: Json, **group: Any) -> PlanContext:
    """Look at pods of a PodGroup, of which each has fields of its own."""
    own: Json = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [made_pod(f"p-{n}", {}, **own, **spec) for n, spec in enumerate(specs)]
    return context_about(view_of_workloads(pods, pod_group(**group)), pods[0])


def told(*specs: Json, **group: Any) -> str:
    """What is said of pods of a PodGroup; empty: they agree."""
    context = looked_at(*specs, **group)
    found = find_disagreement(context.pods, context)
    return "" if found is None else f"{found.reason}: {found.message}"


def test_equal_values_agree() -> None:
    high = {"priority": 7, "preemptionPolicy": "Never"}
    assert told(high, high, **high) == ""
    assert told({}, {}, priority=0, preemptionPolicy="PreemptLowerPriority") == ""


@pytest.mark.parametrize(
    ("pod", "group", "text"),
    [
        (
            {"priority": 5},
            {"priority": 7},
            "pod p-1 has priority 5, PodGroup g has 7",
        ),
        ({"priority": 7}, {"priority": 0}, "pod p-1 has priority 7, PodGroup g has 0"),
        (
            {"preemptionPolicy": "Never"},
            {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"},
            ("pod p-1 has preemptionPolicy Never, PodGroup g has PreemptLowerPriority"),
        ),
        (
            {},
            {"priority": 0, "preemptionPolicy": "Never"},
            ("pod p-1 has preemptionPolicy PreemptLowerPriority, PodGroup g has Never"),
        ),
        (
            {},
            {"priorityClassName": "high"},
            "pod p-1 has priorityClassName none, PodGroup g has high",
        ),
    ],
)
def test_a_pod_that_differs_is_named_with_both_values(
    pod: Json, group: Json, text: str
) -> None:
    """On a cluster by what the API server filled in, offline also by the classes."""
    equal = {**group}
    words = told(equal, pod, **group)
    assert words.startswith(f"PriorityDiffers: {text}: kube-scheduler binds no pod")
    assert words.endswith(SAME)


def test_what_is_not_said_is_not_compared() -> None:
    """A PodGroup of an older release has no policy; a class has no number offline."""
    assert told({"preemptionPolicy": "Never"}, {}, priority=0) == ""
    assert told({"priorityClassName": "high"}, {}, priority=0) == ""


def test_pods_of_no_group_and_of_one_that_is_not_seen_are_left() -> None:
    lone = made_pod("p", {}, priority=5)
    unseen = made_pod("q", {}, schedulingGroup={"podGroupName": "gone"}, priority=5)
    context = context_about(view_of_workloads([lone, unseen]), lone)
    assert find_disagreement([lone, unseen], context) is None


def test_nothing_is_submitted_for_them() -> None:
    plan = plan_gang(looked_at({"priority": 5}, {"priority": 5}, priority=7))
    assert plan.messages == ()
    assert [report.reason for report in plan.reports] == ["PriorityDiffers"]
    assert len(plan.reports[0].pods) == 2
