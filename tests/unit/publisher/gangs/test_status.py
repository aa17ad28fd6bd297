"""The status of a Gang object, and what its events say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.ids import NodeName
from contracts.messages import ExpectedStart, NodesLacking
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from publisher.gangs.notes import list_notes
from publisher.gangs.status import make_gang_status
from tests import builders
from tests.builders.pods import waiting_pod

NOW = "2026-11-20T12:00:00Z"


def shown(*pods: Pod) -> tuple[Any, Any]:
    """Give phase and pods of a gang of two of which there is nothing to tell."""
    gang = builders.gang(builders.member(count=2), name="red")
    status = make_gang_status(gang, [], pods, {}, NOW)
    return status["phase"], status["pods"]


def ran(name: str, phase: str) -> Pod:
    return waiting_pod(name, gang="red", opened_by="uid-red", node="n1", phase=phase)


def deleted(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=NOW))


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ((), ("Pending", "0/2")),
        ((waiting_pod("a", gang="red"),), ("Pending", "0/2")),
        # The bus lost what was said of the gang, or somebody cancelled it: it runs.
        ((ran("a", "Running"), ran("b", "Running")), ("Running", "2/2")),
        ((ran("a", "Succeeded"), ran("b", "Running")), ("Running", "2/2")),
        ((ran("a", "Succeeded"), ran("b", "Succeeded")), ("Completed", "2/2")),
        # One that failed was replaced.
        (
            (ran("a", "Running"), ran("b", "Failed"), ran("c", "Running")),
            ("Running", "2/2"),
        ),
        ((ran("a", "Running"), deleted(ran("b", "Running"))), ("Running", "1/2")),
    ],
)
def test_pods_are_counted_as_they_are(
    pods: tuple[Pod, ...], status: tuple[str, str]
) -> None:
    """By what each pod shows of itself, and by nothing that we remember."""
    assert shown(*pods) == status


def conditions_of(reason: str, present: dict[str, Any]) -> dict[str, str]:
    """Give the conditions of a gang of which that is told; empty: all is well."""
    pods = (ran("a", "Running"), waiting_pod("b", gang="red", opened_by="uid-red"))
    told = StatusReport(phase="Running", reason=reason, message="why", pods=pods[1:])
    gang = builders.gang(builders.member(count=2), name="red")
    status = make_gang_status(gang, [told], pods, present, NOW)
    return {one["type"]: one["status"] for one in status["conditions"]}


def test_what_kube_scheduler_refuses_is_a_condition_while_it_lasts() -> None:
    """The devices are allocated all the same."""
    refused = conditions_of("SchedulerRefused", {})
    assert refused == {"Allocated": "True", "SchedulerRefused": "True"}
    present = {"conditions": [{"type": "SchedulerRefused", "status": "True"}]}
    mended = conditions_of("", present)
    assert mended == {"Allocated": "True", "SchedulerRefused": "False"}
    broken = conditions_of("GangBroken", {})
    assert broken == {"Allocated": "True", "GangBroken": "True"}
    sick = conditions_of("DeviceFailed", {})
    assert sick == {"Allocated": "True", "DeviceFailed": "True"}
    limited = conditions_of("RecreationsExhausted", {})
    assert limited == {"Allocated": "True", "RecreationsExhausted": "True"}
    late = conditions_of("DurationExceeded", {})
    assert late == {"Allocated": "True", "DurationExceeded": "True"}
    failed = conditions_of("DeviceNotAttached", {})
    assert failed == {"Allocated": "True", "DeviceNotAttached": "True"}


def test_how_often_it_was_made_anew_is_in_the_status_until_that_is_forgotten() -> None:
    gang = builders.gang(builders.member(count=2), name="red")
    report = StatusReport(phase="Running", reason="DeviceFailed", recreations=3)
    status = make_gang_status(gang, [report], [], {}, NOW)
    assert status["recreations"] == 3
    after = make_gang_status(gang, [StatusReport(phase="Running")], [], status, NOW)
    assert after["recreations"] is None


def test_a_refusal_is_a_warning() -> None:
    pod = waiting_pod("b", gang="red", opened_by="uid-red")
    told = StatusReport(
        phase="Running", reason="SchedulerRefused", message="why", pods=(pod,)
    )
    (note,) = list_notes([told], None)
    assert (note.type, note.reason) == ("Warning", "GangSchedulerRefused")


@pytest.mark.parametrize(
    ("expected", "written"),
    [
        (None, None),
        (
            ExpectedStart(time=NOW, proven=True, because="a must end first"),
            {"time": NOW, "proven": True, "because": "a must end first"},
        ),
        (ExpectedStart(because="x"), {"proven": False, "because": "x"}),
    ],
)
def test_a_start_that_is_promised_is_in_the_status(
    expected: ExpectedStart | None, written: dict[str, Any] | None
) -> None:
    gang = builders.gang(builders.member(count=2), name="red")
    report = StatusReport(phase="Pending", reason="DevicesTaken", expected=expected)
    status = make_gang_status(gang, [report], [], {}, NOW)
    assert status.get("expectedStart") == written


def test_nodes_that_it_lacks_are_in_the_status_until_it_lacks_none() -> None:
    gang = builders.gang(builders.member(count=2), name="red")
    lacks = (NodesLacking(count=2, like=NodeName("a"), shape="4 devices of x"),)
    report = StatusReport(phase="Pending", reason="DevicesTaken", lacks=lacks)
    status = make_gang_status(gang, [report], [], {}, NOW)
    assert status["lacks"] == [{"count": 2, "like": "a", "shape": "4 devices of x"}]
    after = make_gang_status(gang, [StatusReport(phase="Running")], [], status, NOW)
    assert after["lacks"] is None
