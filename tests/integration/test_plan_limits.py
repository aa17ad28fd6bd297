"""`moorings plan` ends its search by --time-limit or Ctrl-C, and prints what it has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.judge.cluster import Cluster
from benchmarks.judge.verdict import judge_plan
from benchmarks.worlds.ordinary.families import draw_world
from tests.lab.command_line import MAIN

LARGE = 100
"""Nodes of a world whose search goes on for long after the first answer."""
INTERRUPTED = "interrupted: answering with the best found so far"


@pytest.fixture(scope="module")
def world() -> list[dict[str, Any]]:
    return draw_world("openb", LARGE, 1)


@pytest.fixture
def file(world: list[dict[str, Any]], tmp_path: Path) -> Path:
    path = tmp_path / "world.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": world}))
    return path


def is_answer(world: list[dict[str, Any]], printed: str) -> None:
    """See that gangs are in by an answer that is right, with a bound above it."""
    found = json.loads(printed)
    assert found["status"] == "Feasible"
    verdict = judge_plan(Cluster(world), found)
    assert not verdict.wrong
    (tier,) = (tier for tier in found["objective"] if tier["tier"] == "gangs")
    assert 0 < tier["value"] == verdict.value <= tier["bound"]


def test_the_time_limit_ends_a_search(world: list[dict[str, Any]], file: Path) -> None:
    """However short it is, there is an answer; who is out makes it a no, as always."""
    ended = subprocess.run(
        [*MAIN, "plan", "-f", file, "--time-limit", "0.001", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "")
    is_answer(world, ended.stdout)


def begin(file: Path) -> subprocess.Popen[str]:
    """Begin a plan in a group of its own, as a terminal does, and see it decide."""
    process = subprocess.Popen(
        [*MAIN, "plan", "-f", file, "--progress", "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert any(line.startswith("deciding ") for line in process.stderr)
    return process


def test_ctrl_c_prints_what_was_found_so_far(
    world: list[dict[str, Any]], file: Path
) -> None:
    with begin(file) as process:
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate()
    assert process.returncode == 1
    assert INTERRUPTED in said
    is_answer(world, printed)


def test_the_second_ctrl_c_aborts_at_once(file: Path) -> None:
    """It is pressed again when the first is answered."""
    with begin(file) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        assert any(INTERRUPTED in line for line in process.stderr)
        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate()
    assert (process.returncode, printed) == (130, "")


def test_ctrl_c_while_the_input_is_read_aborts() -> None:
    """There is nothing yet that could be an answer."""
    with subprocess.Popen(
        [*MAIN, "plan", "-f", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: it is being read.
        process.stdin.write("# nothing\n" * 100_000)
        process.stdin.flush()
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate()
    assert (process.returncode, printed, said) == (130, "", "")
