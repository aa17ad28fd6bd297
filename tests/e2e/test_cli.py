"""The executable as people use it: help, answers, exit codes, and tired mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

MAIN = [sys.executable, "-c", "from moorings.cli.main import main; main()"]
EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
GANG: dict[str, Any] = {
    "apiVersion": "moorings.dev/v1alpha1",
    "kind": "Gang",
    "metadata": {"name": "train", "namespace": "team-a"},
    "spec": {
        "members": [
            {
                "name": "worker",
                "count": 2,
                "claims": [
                    {
                        "name": "gpus",
                        "spec": {
                            "devices": {
                                "requests": [
                                    {
                                        "name": "gpu",
                                        "exactly": {
                                            "deviceClassName": "gpu.moorings.dev",
                                            "count": 4,
                                        },
                                    }
                                ]
                            }
                        },
                    }
                ],
            }
        ]
    },
}


def moorings(
    *arguments: str, home: Path, server: str = "", stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "COLUMNS": "100"}
    if server:
        environment["MOORINGS_SERVER"] = server
    return subprocess.run(
        [*MAIN, *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A running `moorings up` of the small fleet: its state home and server."""
    home = tmp_path_factory.mktemp("home")
    process = subprocess.Popen(
        [*MAIN, "up", "--fleet", "small"],
        env={**os.environ, "XDG_STATE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("ready: nats://127.0.0.1:"), first + process.stdout.read()
    yield home, first.split()[1].rstrip(",")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    process.stdout.close()
    assert process.returncode == 0


def test_a_gang_lives_its_life(stack: tuple[Path, str], tmp_path: Path) -> None:
    """Submitted, decided, shown, explained, replayed, released; server found."""
    home, _ = stack
    file = tmp_path / "gang.yaml"
    file.write_text(yaml.safe_dump(GANG))
    submitted = moorings("submit", "-f", str(file), "--wait", home=home)
    assert submitted.returncode == 0, submitted.stderr
    assert "gang/train submitted" in submitted.stdout
    shown = moorings("get", "-o", "json", home=home)
    (view,) = json.loads(shown.stdout)
    assert (view["name"], view["pods"]) == ("train", 2)
    explained = moorings("explain", "train", home=home)
    assert "worker/0 on " in explained.stdout
    listed = moorings("solves", "list", "-o", "json", home=home)
    solve = json.loads(listed.stdout)[-1]["opened"]["solve"]
    target = tmp_path / "solve.moorings"
    exported = moorings("solves", "export", solve[:8], "--file", str(target), home=home)
    assert exported.returncode == 0, exported.stderr
    replayed = moorings("replay", str(target), home=home)
    assert replayed.returncode == 0
    assert "same bytes" in replayed.stdout
    released = moorings("release", "team-a/train", home=home)
    assert "gang/train released" in released.stdout
    for _ in range(100):
        (view,) = json.loads(moorings("get", "train", "-o", "json", home=home).stdout)
        if view["phase"] == "Completed":
            break
        time.sleep(0.1)
    assert view["phase"] == "Completed"
    assert moorings("release", "train", home=home).returncode == 1


def test_a_no_is_exit_code_1_and_says_why(stack: tuple[Path, str]) -> None:
    home, _ = stack
    asked = json.loads(json.dumps(GANG))
    asked["metadata"]["name"] = "too-large"
    asked["spec"]["members"][0]["count"] = 100
    answer = moorings("submit", "-f", "-", "--wait", home=home, stdin=json.dumps(asked))
    assert answer.returncode == 1
    assert "DevicesTaken" in answer.stdout or "NoCandidate" in answer.stdout
    explained = moorings("explain", "too-large", home=home)
    assert "counted: " in explained.stdout
    assert moorings("cancel", "too-large", home=home).returncode == 0


def test_nodes_are_shown(stack: tuple[Path, str]) -> None:
    home, _ = stack
    shown = moorings("get", "nodes", home=home)
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[0].split() == ["NAME", "DEVICES", "HELD", "POOLS"]


MISTAKES = {
    ("get", "nothing-here"): (3, "no gang named 'nothing-here'"),
    ("replay", "ffffffff"): (3, "no solve named 'ffffffff'"),
    ("submit", "-f", "missing.yaml"): (3, "missing.yaml: No such file"),
    ("submit",): (2, "filename"),
    ("sumbit",): (2, "No such command"),
    ("plan",): (2, "needs either -f FILE or --jsonl"),
    ("plan", "-f", "missing.yaml"): (3, "missing.yaml: No such file"),
    ("plan", "-f", "x", "--feature-gates", "Nope=true"): (2, "'Nope' is not known"),
    ("plan", "-f", "x", "--order", "random"): (2, "'random' is not one of"),
    ("get", "--server", "nats://127.0.0.1:1"): (3, "nats"),
    ("get", "--cluster", ""): (3, "--cluster"),
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_named_without_a_traceback(
    stack: tuple[Path, str], arguments: tuple[str, ...]
) -> None:
    home, _ = stack
    code, text = MISTAKES[arguments]
    answer = moorings(*arguments, home=home)
    assert answer.returncode == code, answer.stdout + answer.stderr
    assert text in answer.stderr
    assert "Traceback" not in answer.stderr + answer.stdout


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("{", "standard input"),
        (
            "kind: Pod\napiVersion: v1\nmetadata: {name: p}\n",
            "expected a Gang, got Pod",
        ),
        (json.dumps({**GANG, "spec": {"members": []}}), "spec.members"),
        (json.dumps({**GANG, "spec": {"members": 3}}), "spec.members"),
    ],
)
def test_a_bad_document_is_refused_by_field(
    stack: tuple[Path, str], document: str, text: str
) -> None:
    home, _ = stack
    answer = moorings("submit", "-f", "-", home=home, stdin=document)
    assert answer.returncode == 3
    assert text in answer.stderr
    assert "Traceback" not in answer.stderr


def test_every_command_has_help(tmp_path: Path) -> None:
    for command in (
        (),
        ("up",),
        ("demo",),
        ("plan",),
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
