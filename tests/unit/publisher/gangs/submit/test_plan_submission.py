"""What the author of a gang is told when it is submitted."""

from __future__ import annotations

from contracts.workload import Pod
from publisher.gangs.plan_gang import plan_gang
from tests.builders.plans import context_about
from tests.builders.workloads import made_pod, view_of_workloads

OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-foo"


def _told(pod: Pod) -> list[str]:
    view = view_of_workloads([pod])
    reports = plan_gang(context_about(view, pod)).reports
    return [f"{each.reason}: {each.message}" for each in reports if each.reason]


def _asking(amount: str) -> Pod:
    wanted = {"requests": {OPAQUE: amount, "cpu": "1500m"}, "limits": {}}
    containers = [{"name": "c", "resources": wanted}]
    return made_pod("p", {}, containers=containers)


def test_a_part_of_what_is_counted_is_told() -> None:
    """It is submitted all the same: kube-scheduler rounds it up. CPU has parts."""
    place = f"spec.containers[0].resources.requests[{OPAQUE}]"
    text = "1500m is not a whole number; it counts as 2"
    assert _told(_asking("1500m")) == [f"AmountFractional: {place}: {text}"]
    assert _told(_asking("2000m")) == []
