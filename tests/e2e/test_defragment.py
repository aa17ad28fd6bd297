"""`moorings defragment` beside a running stack: what it plans frees nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.command_line import moorings, read_server, stack_up

NAMES = "abcd"


def gang(name: str, gpus: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu.moorings.dev", "count": gpus}
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    member = {"name": "worker", "count": 1, "claims": [{"name": "gpus", "spec": spec}]}
    return {
        "apiVersion": "moorings.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": name},
        "spec": {"members": [member]},
    }


def write(path: Path, *gangs: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(gangs))
    return str(path)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A stack of eight nodes with eight GPUs each, two of them half in use."""
    with stack_up(tmp_path) as process:
        assert read_server(process)
        for name in NAMES:
            file = write(tmp_path / "gang.yaml", gang(name, 4))
            done = moorings("submit", "-f", file, "--wait", home=tmp_path)
            assert done.returncode == 0, done.stderr
        where = {name: node_of(tmp_path, name) for name in NAMES}
        first = {node: name for name, node in sorted(where.items(), reverse=True)}
        for name in sorted(set(NAMES) - set(first.values())):
            assert moorings("release", name, home=tmp_path).returncode == 0
        yield tmp_path


def node_of(home: Path, name: str) -> str:
    """Return the node of a gang of one pod."""
    found = moorings("explain", name, "-o", "json", home=home).stdout
    return found.split('"node": "')[1].split('"')[0]


def test_fewest_moves_of_what_runs(home: Path, tmp_path: Path) -> None:
    done = moorings("defragment", "--free-nodes", "7", "-o", "json", home=home)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["proven"]
    (step,) = plan["steps"]
    (pod,) = step["pods"]
    assert pod["leaves"] in plan["nodes"]
    assert pod["node"] not in plan["nodes"]
    none = moorings("defragment", "--free-nodes", "8", home=home)
    assert none.returncode == 1
    assert "no moves are enough" in none.stderr

    wanted = gang("large", 8)
    wanted["spec"]["members"][0]["count"] = 7
    file = write(tmp_path / "large.yaml", wanted)
    shown = moorings("defragment", "--for", file, home=home)
    assert shown.returncode == 0, shown.stderr
    assert "no fewer moves are enough" in shown.stdout
