"""The executable where no stack runs: plans, help, and what is no yes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.inputs import TRAIN
from tests.lab.command_line import moorings

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"


def test_a_gang_that_cannot_be_is_named_and_the_others_planned(tmp_path: Path) -> None:
    """What no object says is not called optimal."""
    empty = json.loads(json.dumps(TRAIN))
    empty["metadata"]["name"] = "empty"
    empty["spec"]["members"][0]["count"] = 0
    both = json.dumps({"kind": "List", "apiVersion": "v1", "items": [empty, TRAIN]})
    answer = moorings("plan", "-f", "-", home=tmp_path, stdin=both)
    assert answer.returncode == 3
    assert "Gang empty: spec.members[0].count: Invalid value: 0" in answer.stderr
    assert "train" in answer.stdout
    alone = moorings("plan", "-f", "-", home=tmp_path, stdin=json.dumps(empty))
    assert (alone.returncode, alone.stdout) == (3, "")


def test_a_large_plan_is_counted_and_says_each_reason_once(tmp_path: Path) -> None:
    """Each claim is there for who asks."""
    gangs = []
    for number in range(40):
        gang = json.loads(json.dumps(TRAIN))
        gang["metadata"] = {"name": f"g{number:02}", "namespace": "team-a"}
        gangs.append(gang)
    many = json.dumps({"kind": "List", "apiVersion": "v1", "items": gangs})
    answer = moorings("plan", "-f", "-", home=tmp_path, stdin=many)
    assert answer.returncode == 3
    head, counts, reason, status = answer.stdout.splitlines()
    assert head.split() == ["VERDICT", "GANGS", "PODS", "CLAIMS", "DEVICES", "NODES"]
    assert counts.split()[:2] == ["error", "40"]
    assert reason.startswith("40 gangs (g00, g01, g02, g03, g04 and 35 more): Unknown")
    assert "40 error" in status
    assert "claims are not listed; use --all" in answer.stderr
    every = moorings("plan", "-f", "-", "--all", home=tmp_path, stdin=many)
    assert len(every.stdout.splitlines()) > 40
    assert every.stdout.startswith("GANG")


@pytest.mark.parametrize(
    ("document", "code", "text"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap"}, 3, "some input was skipped"),
        ({"metadata": {"name": "x"}}, 3, "apiVersion: required"),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, 0, ""),
        (
            {"apiVersion": "v1", "kind": "List", "items": []},
            3,
            "is empty",
        ),
    ],
)
def test_a_plan_of_nothing_is_no_yes_unless_all_was_understood(
    tmp_path: Path, document: Any, code: int, text: str
) -> None:
    answer = moorings("plan", "-f", "-", home=tmp_path, stdin=json.dumps(document))
    assert answer.returncode == code
    assert text in answer.stderr


def test_every_command_has_help(tmp_path: Path) -> None:
    for command in (
        (),
        ("up",),
        ("demo",),
        ("plan",),
        ("doctor",),
        ("submit",),
        ("get",),
        ("watch",),
        ("explain",),
        ("cancel",),
        ("release",),
        ("solves",),
        ("solves", "export"),
        ("replay",),
        ("agent",),
        ("solver",),
        ("publisher",),
        ("version",),
    ):
        answer = moorings(*command, "--help", home=tmp_path)
        assert answer.returncode == 0, command
        assert "Usage" in answer.stdout
    shown = moorings("version", "-o", "json", home=tmp_path)
    assert json.loads(shown.stdout)["moorings"]


def test_the_example_of_the_readme_is_planned(tmp_path: Path) -> None:
    """A GPU and a NIC on one PCIe root for each of 8 workers."""
    answer = moorings("plan", "-f", str(EXAMPLES), "-o", "json", home=tmp_path)
    assert answer.returncode == 0, answer.stderr
    plan = json.loads(answer.stdout)
    assert plan["status"] == "Optimal"
    assert len(plan["claims"]) == 8
    roots = set()
    for claim in plan["claims"]:
        gpu, nic = claim["allocation"]["devices"]["results"]
        assert gpu["driver"] != nic["driver"]
        roots.add((claim["node"], gpu["device"]))
    assert len(roots) == 8
