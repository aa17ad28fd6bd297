"""Pods that are meant for us and are not at our gate are told what they lack."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.names import GATE
from contracts.reports import WAITING
from contracts.workload import Pod, PodSchedulingGate
from moorings.lint.findings import LintRule
from publisher.gangs.context import NextSteps
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.strays import GATE_MISSING, NO_EFFECT, report_strays
from publisher.gangs.view import View
from tests import builders
from tests.builders.plans import context_about
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.values import NAMESPACE


def stray(name: str, *gates: str, **fields: Any) -> Pod:
    pod = waiting_pod(name, **{"gang": "train", **fields})
    others = tuple(PodSchedulingGate(name=gate) for gate in gates)
    return replace(pod, spec=replace(pod.spec, scheduling_gates=others))


def planned(*pods: Pod) -> NextSteps:
    view = View()
    for pod in pods:
        view.apply_pod(f"{NAMESPACE}/{pod.metadata.name}", pod)
    return plan_gang(context_about(view, pods[0]))


def test_pods_at_a_gate_that_nobody_opens_are_told_together() -> None:
    pods = [stray(name, "moorings.dev/gang") for name in ("a", "b")]
    steps = planned(*pods)
    (report,) = steps.reports
    assert (report.phase, report.reason, report.pods) == (
        WAITING,
        NO_EFFECT,
        tuple(pods),
    )
    assert report.message == (
        f"nobody opens the gate moorings.dev/gang; did you mean {GATE}?"
    )
    assert not steps.patches
    assert not steps.messages
    assert not steps.removals


def test_pods_with_the_label_alone_are_told_that_it_does_nothing() -> None:
    """Also once kube-scheduler has bound them."""
    waiting, bound = planned(stray("a"), stray("b", node="n1")).reports
    assert [(each.phase, each.reason) for each in (waiting, bound)] == [
        (WAITING, NO_EFFECT),
        (GangPhase.RUNNING, NO_EFFECT),
    ]
    assert waiting.message == bound.message
    assert f"have the label moorings.dev/gang but not the gate {GATE}" in bound.message


def test_pods_with_a_misspelt_label_are_told_what_was_meant() -> None:
    labels = {"mooring.dev/gang": "train"}
    (report,) = planned(stray("a", gang="", labels=labels)).reports
    assert (report.phase, report.reason) == (WAITING, NO_EFFECT)
    assert report.message == (
        "label mooring.dev/gang is unknown; did you mean moorings.dev/gang?"
    )


def test_lint_calls_it_the_same() -> None:
    assert LintRule.NO_EFFECT == NO_EFFECT


def test_they_do_not_count_for_the_gang_beside_them() -> None:
    """Those that wait rightly wait for them, and are told so."""
    gated = waiting_pod("a", gang="train", size=2)
    reports = planned(gated, stray("b")).reports
    told = {report.reason: report.pods[0].metadata.name for report in reports}
    assert told == {NO_EFFECT: "b", "PodsMissing": "a"}


def test_an_unallocated_claim_of_ours_alone_is_the_reason() -> None:
    view = View(allocates_alone=True)
    pod = stray("a", gang="", templates=["gpus"])
    view.apply_pod(f"{NAMESPACE}/a", pod)
    context = context_about(view, pod)
    assert not list(report_strays(context))
    key = f"{NAMESPACE}/a-gpus"
    view.apply_claim(key, real_claim("a-gpus", managed=False))
    (report,) = report_strays(context)
    assert (report.phase, report.reason) == (WAITING, GATE_MISSING)
    others = replace(context, owns=lambda _: False)
    assert not list(report_strays(others))
    allocated = builders.allocation()
    theirs = real_claim("a-gpus", managed=False, allocated=allocated, version=2)
    view.apply_claim(key, theirs)
    assert not list(report_strays(context))
    immediate = builders.labelled(real_claim("a-gpus", managed=False, version=3))
    view.apply_claim(key, immediate)
    assert not list(report_strays(context))
