"""`moorings what-if` beside a running stack: what it says is what is decided then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.lab.command_line import moorings, read_server, stack_up

STORY = Path("docs/quickstart/time")
WITHIN_S = 60.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A stack of eight nodes with eight GPUs each, on five of which a gang runs."""
    with stack_up(tmp_path) as process:
        assert read_server(process)
        done = moorings(
            "submit", "-f", str(STORY / "small.yaml"), "--wait", home=tmp_path
        )
        assert done.returncode == 0, done.stderr
        moorings("submit", "-f", str(STORY / "large.yaml"), home=tmp_path)
        yield tmp_path


def read(home: Path, *arguments: str) -> Any:
    return json.loads(moorings(*arguments, "-o", "json", home=home).stdout)


def test_the_real_change_is_decided_by_the_same_bytes(home: Path) -> None:
    forecast = read(home, "what-if", "--free", "small")
    fates = {each["name"]: each for each in forecast["gangs"]}
    assert fates["default/small"]["after"]["verdict"] == "ended"
    assert fates["default/large"]["before"]["verdict"] == "waits"
    assert fates["default/large"]["after"]["verdict"] == "allocated"
    moorings("release", "small", home=home)
    wanted, end_s = forecast["decisions"]["after"], monotonic() + WITHIN_S
    last = ""
    while [last] != wanted and monotonic() < end_s:
        sleep(0.5)
        decided = read(home, "solves", "list")[-1]["decided"]
        last = decided["decision"] if decided else ""
    assert [last] == wanted
