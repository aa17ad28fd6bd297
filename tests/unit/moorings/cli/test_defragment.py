"""The command: what it refuses, and how it shows a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorings.cli import defragment
from moorings.cli.main import app
from moorings.errors import UsageError
from moorings.what_if.moves import GangMove, MovesPlan, PodPlace
from tests.builders.inputs import TRAIN

PODS = tuple(
    PodPlace(pod=f"w-{n}", node="n-2", devices=(f"d/n-2/gpu-{n}",), leaves="n-1")
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
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1] == "1 team-a/train n-1 x2 n-2 (gpu-0, gpu-1)".split()
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
