"""Pods are checked as the API server would, and their gangs as the publisher would."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.kubernetes.decode import Decoded
from contracts.meta import ObjectMeta
from contracts.names import GANG_SIZE, GATE
from contracts.workload import Workload
from moorings.lint.findings import LintRule
from moorings.lint.pods import check_gangs, check_pods
from moorings.plan.asking import ask
from moorings.plan.cluster import make_cluster
from moorings.plan.objects import PlanObject
from tests import builders
from tests.builders.inputs import entries, written_job, written_pod
from tests.builders.lint import lint_objects


def findings(*objects: Any) -> list[str]:
    """Name what is wrong with pods: object, field and rule."""
    return [
        f"{found.subject} {found.field} {found.rule}"
        for found in check_pods(entries(*objects))
    ]


def waits(*objects: Any) -> list[str]:
    """Say which gangs would wait."""
    view = make_cluster(entries(*objects)).view
    asked = ask(view, view.groups())
    return [found.message for found in check_gangs(asked.waiting)]


def severities(*objects: Any) -> list[str]:
    """Say how bad it is that gangs would wait."""
    view = make_cluster(entries(*objects)).view
    found = check_gangs(ask(view, view.groups()).waiting)
    return [f"{each.severity} {each.message.partition(':')[0]}" for each in found]


def test_parts_of_an_extended_resource_are_refused_in_templates_too() -> None:
    resources = {"limits": {"example.com/gpu": "500m"}}
    containers = [{"name": "c", "resources": resources}]
    field = "spec.containers[0].resources.limits[example.com/gpu]"
    pod = written_pod("p", containers=containers)
    assert findings(pod) == [f"pod/team-a/p {field} Invalid"]
    job = written_job("j", 3, containers=containers)
    assert findings(job) == [f"job/team-a/j spec.template.{field} Invalid"]


def test_pods_refer_to_what_is_there() -> None:
    found = findings(written_pod("a", claim="c"), written_pod("b", template="t"))
    assert found == [
        "pod/team-a/a spec.resourceClaims[0].resourceClaimName UnknownResourceClaim",
        (
            "pod/team-a/b spec.resourceClaims[0].resourceClaimTemplateName "
            "UnknownResourceClaimTemplate"
        ),
    ]
    there = builders.claim(name="c"), builders.claim_template(name="t")
    assert (
        findings(*there, written_pod("a", claim="c"), written_pod("b", template="t"))
        == []
    )


def test_containers_name_requests_of_their_claims() -> None:
    """Else they would start without a device; of a claim not there nothing is said."""
    known = builders.claim_template(builders.request("one"), name="t")
    for request, wrong in (("one", False), ("", False), ("two", True)):
        claims = [{"name": "gpu", "request": request}]
        containers = [{"name": "c", "resources": {"claims": claims}}]
        pod = written_pod("p", template="t", containers=containers)
        name = pod["spec"]["resourceClaims"][0]["name"]
        claims[0]["name"] = name
        field = "spec.containers[0].resources.claims[0].request"
        expected = [f"pod/team-a/p {field} UnknownRequest"] if wrong else []
        assert findings(known, pod) == expected
        assert "UnknownRequest" not in " ".join(findings(pod))


def test_pods_that_run_or_have_run_are_not_checked() -> None:
    """What their manifests said is past."""
    assert findings(written_pod("a", claim="c", nodeName="n", live=True)) == []
    assert findings(written_pod("a", claim="c", phase="Failed", live=True)) == []


def test_a_gang_without_a_size_would_wait() -> None:
    (text,) = waits(written_job("train", 2, gang="train"))
    assert text.startswith("GangSizeMissing: there is no Gang object 'train'")
    assert waits(written_job("train", 2, gang="train", size=2)) == []
    (text,) = waits(written_job("train", 2, gang="train", size=3))
    assert text == (
        f"PodsMissing: 2 of 3 pods are there (annotation {GANG_SIZE} says 3, Job "
        "train has parallelism 2)"
    )
    assert waits(builders.gang(builders.member(count=0))) == []


@pytest.mark.parametrize("kind", ["Deployment", "Job", "StatefulSet"])
def test_a_gang_that_is_smaller_than_its_workload_is_found(kind: str) -> None:
    """Whoever scaled the one forgot the other."""
    workload = written_job("train", 6, gang="train", size=4)
    if kind != "Job":
        spec = {"replicas": 6, "template": workload["spec"]["template"]}
        workload |= {"apiVersion": "apps/v1", "kind": kind, "spec": spec}
    (found,) = (
        each
        for each in lint_objects(builders.device_class(), workload).findings
        if each.rule is LintRule.SIZE_DIFFERS
    )
    field = "parallelism" if kind == "Job" else "replicas"
    assert found.severity == "warning"
    assert f"says 4, {kind} train has {field} 6" in found.message


def test_what_can_never_be_decided_is_an_error() -> None:
    """A size that is none, a name that is none; pods that are missing may come."""
    sized = written_job("train", 2, gang="train", size=2)
    sized["spec"]["template"]["metadata"]["annotations"][GANG_SIZE] = "x"
    named, missing = (
        written_job("train", 2, gang="Train_", size=2),
        written_job("train", 2, gang="train", size=3),
    )
    assert [severities(each) for each in (sized, named, missing)] == [
        ["error GangSizeInvalid"],
        ["error GangNameInvalid"],
        ["warning PodsMissing"],
    ]


def test_refused_pods_of_a_job_are_one_finding_with_their_count() -> None:
    """Of the Job, whose author can mend it; others have one of their own."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    containers = [{"name": "c", "resources": limits}]
    job = written_job("train", 3, containers=containers)
    pod = written_pod("alone", containers=containers)
    cluster = make_cluster(entries(job, pod))
    found = list(check_gangs(cluster.waiting))
    assert [(each.kind, each.name) for each in found] == [
        ("Job", "train"),
        ("Gang", "alone"),
    ]
    assert found[0].message.startswith("3 pods: UnknownDeviceClass: no DeviceClass")


def test_pods_that_differ_from_their_pod_group_are_an_error() -> None:
    """kube-scheduler would bind none of them; offline the classes tell."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": builders.NAMESPACE},
        "spec": {
            "priorityClassName": "high",
            "schedulingPolicy": {"gang": {"minCount": 2}},
        },
    }
    meta = ObjectMeta(name="g", namespace=builders.NAMESPACE)
    made = Workload(kind="PodGroup", metadata=meta)
    read = PlanObject.of("x", group, Decoded(kind="PodGroup", value=made))

    def found(**spec: Any) -> list[str]:
        joins: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}, **spec}
        joins["schedulingGates"] = [{"name": GATE}]
        view = make_cluster([read, *entries(written_job("train", 2, **joins))]).view
        waiting = check_gangs(ask(view, view.groups()).waiting)
        return [f"{each.severity} {each.message}" for each in waiting]

    assert found(priorityClassName="high") == []
    (text,) = found()
    assert text.startswith("error PriorityDiffers: pod train-0 has priorityClassName ")
