"""The command: what it refuses, and how it shows a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from moorings.cli import defragment
from moorings.cli.main import app
from moorings.errors import UsageError
from moorings.what_if.moves import GangMove, MovedPod, MovesPlan
from tests.builders.inputs import TRAIN
from tests.builders.running import list_running
from tests.builders.values import DEVICE_CLASS, DRIVER

PODS = tuple(
    MovedPod(pod=f"w-{n}", node="n-2", devices=(f"d/n-2/gpu-{n}",), leaves="n-1")
    for n in range(2)
)
PLAN = MovesPlan(
    is_found=True,
    steps=(GangMove(gang="team-a/train", pods=PODS),),
    nodes=("n-1",),
    places=(),
    at_least=1,
    proven=True,
)


CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": DEVICE_CLASS},
    "spec": {},
}


def node_slice(node: str) -> dict[str, Any]:
    """Make a node of four devices."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {**spec, "devices": [{"name": f"gpu-{n}"} for n in range(4)]},
    }


def run(*options: str) -> Result:
    return CliRunner().invoke(app, ["defragment", *options], catch_exceptions=False)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> list[MovesPlan]:
    """What the cluster on the bus comes to."""
    plans = [PLAN]
    monkeypatch.setattr(defragment, "_ask_bus", lambda *_: plans[0])
    return plans


@pytest.mark.parametrize("options", [(), ("--free-nodes", "1", "--for", "train")])
def test_one_thing_is_asked_for(options: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="--free-nodes"):
        run(*options)


def test_a_file_has_one_gang(tmp_path: Path) -> None:
    file = tmp_path / "gangs.json"
    other = {**TRAIN, "metadata": {"name": "other"}}
    file.write_text(json.dumps({"kind": "List", "items": [TRAIN, other]}))
    with pytest.raises(UsageError, match="2 gangs"):
        run("--for", str(file))


def test_steps_are_shown_in_their_order(answer: list[MovesPlan]) -> None:
    done = run("--free-nodes", "1")
    assert done.exit_code == 0
    first = done.stdout.splitlines()[1]
    assert " ".join(first.split()) == "1 team-a/train n-1 x2 n-2 (gpu-0, gpu-1)"
    assert "free then: n-1" in done.stdout
    assert "no fewer moves are enough" in done.stdout
    assert json.loads(run("--free-nodes", "1", "-o", "json").stdout)["atLeast"] == 1
    assert answer


def test_a_bound_is_told(answer: list[MovesPlan]) -> None:
    answer[0] = MovesPlan(
        is_found=True,
        steps=PLAN.steps,
        nodes=(),
        places=PODS[:1],
        at_least=0,
        proven=False,
    )
    done = run("--for", "large")
    assert "then large fits: n-2" in done.stdout
    assert "not proven: at least 0 moves" in done.stdout


@pytest.mark.parametrize(
    ("proven", "text"),
    [(True, "no moves are enough"), (False, "at least 3 are needed")],
)
def test_exit_code_1_says_that_there_is_no_plan(
    answer: list[MovesPlan], proven: bool, text: str
) -> None:
    answer[0] = MovesPlan(
        is_found=False, steps=(), nodes=(), places=(), at_least=3, proven=proven
    )
    done = run("--free-nodes", "9")
    assert done.exit_code == 1
    assert text in done.output


def test_files_are_asked_for_what_runs_in_them(tmp_path: Path) -> None:
    nodes = (node_slice(f"n-{number}") for number in range(2))
    file = tmp_path / "cluster.yaml"
    running = (*list_running("a", "n-0", "gpu-0"), *list_running("b", "n-1", "gpu-3"))
    file.write_text(yaml.safe_dump_all([CLASS, *nodes, *running]))
    done = run("-f", str(file), "--free-nodes", "1", "-o", "json")
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert plan["proven"]
    (step,) = plan["steps"]
    assert step["pods"][0]["leaves"] == plan["nodes"][0]

    wanted = tmp_path / "wanted.json"
    (member,) = TRAIN["spec"]["members"]
    (claim,) = member["claims"]
    exactly = {"deviceClassName": DEVICE_CLASS, "count": 4}
    asked = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    members = [{**member, "count": 1, "claims": [{**claim, "spec": asked}]}]
    wanted.write_text(json.dumps({**TRAIN, "spec": {"members": members}}))
    shown = run("-f", str(file), "--for", str(wanted))
    assert shown.exit_code == 0, shown.output
    assert "no fewer moves are enough" in shown.stdout
