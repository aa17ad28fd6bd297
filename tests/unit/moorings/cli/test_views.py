"""Gangs are shown by the names that kubectl has for their pods and claims."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.messages import AllocationWritten, PodWritten
from moorings.cli.views import (
    MOST_LINES,
    WAITING,
    explain_gang,
    print_explanation,
    view_gang,
    view_members,
    view_pods,
)
from tests import builders
from tests.builders.decisions import gang_allocated, gang_pending, submission
from tests.builders.plans import record_of

SUBMITTED = submission(builders.gang(builders.member(count=2), priority=7))
DECISION = gang_allocated(pods=2)
PLACED = record_of(SUBMITTED, DECISION)
IDS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
POD = PodWritten(
    member="worker", index=0, pod="train-0", claims={"gpus": "train-0-gpus-x"}
)
WRITTEN = AllocationWritten(**IDS, attempt=1, pods=(POD,))
NOWHERE = AllocationWritten(**IDS, attempt=1)
REASON = Reason(rule=Rule.WITHDRAWN, message="no [bold] device", facts={"devices": 3})


def claim_names(written: AllocationWritten | None) -> list[str]:
    """Name the claims of the placed gang."""
    members = view_members(PLACED, written)
    return [claim["name"] for member in members for claim in member["claims"]]


def test_a_row_counts_pods_and_nodes() -> None:
    """Nodes are those of the decision: two pods of one node are on one."""
    row = view_gang(PLACED)
    assert (row["pods"], row["nodes"], row["priority"]) == (2, 1, 7)
    assert (row["attempt"], row["reason"]) == (1, "")


def test_a_gang_that_waits_says_for_what() -> None:
    """For a decision, or for the first reason of the last one."""
    assert view_gang(record_of(SUBMITTED))["reason"] == WAITING
    pending = replace(gang_pending(), reasons=(REASON,))
    assert view_gang(record_of(SUBMITTED, pending))["reason"] == str(REASON)


def test_claims_have_the_names_that_kubernetes_gave_them() -> None:
    """Until those are known none; without a cluster those of the decision."""
    assert claim_names(WRITTEN) == ["train-0-gpus-x", ""]
    assert claim_names(None) == ["", ""]
    assert claim_names(NOWHERE) == ["train-worker-0-gpus", "train-worker-1-gpus"]
    omitted = replace(NOWHERE, pods_omitted=True)
    assert claim_names(omitted) == ["", ""]


def test_every_pod_of_a_placed_gang_has_a_row() -> None:
    """Also one whose name is not known yet."""
    rows = list(view_pods(PLACED, WRITTEN))
    assert [(row["name"], row["member"]) for row in rows] == [
        ("train-0", "worker/0"),
        ("", "worker/1"),
    ]
    assert list(view_pods(record_of(SUBMITTED), None)) == []


def test_an_explanation_is_printed_as_it_was_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Brackets are no markup, and the facts are counted below their reason."""
    pending = replace(gang_pending(), reasons=(REASON,))
    print_explanation(explain_gang(record_of(SUBMITTED, pending)))
    head, reason, counted = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{builders.NAMESPACE}/train: Pending (attempt 1, solve ")
    assert reason == f"  {Rule.WITHDRAWN}: no [bold] device"
    assert counted == "    counted: devices 3"


def test_a_long_list_of_members_is_cut_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each member is a line: its pod, its node, its devices with their claim."""
    many = gang_allocated(pods=MOST_LINES + 5)
    print_explanation(explain_gang(record_of(SUBMITTED, many), WRITTEN))
    _, first, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        "  worker/0 pod/train-0 on node-1: gpu-0 of resourceclaim/train-0-gpus-x"
    )
    assert last == "  ... and 5 more (-o json shows all)"
