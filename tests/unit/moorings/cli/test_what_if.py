"""The command on files: both plans side by side, and what is refused at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from moorings.cli.main import app
from moorings.errors import UnknownNameError, UsageError
from solver.allocate import allocate
from solver.record import dump_export
from tests.builders.inputs import TRAIN
from tests.builders.problems import CLUSTER, problem_of
from tests.builders.solves import recorded
from tests.builders.timeline import World

CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {},
}


def node_slice(node: str, gpus: int = 2) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    names = [{"name": f"gpu-{number}"} for number in range(gpus)]
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {**spec, "devices": names},
    }


def gang(name: str, pods: int, gpus: int = 2) -> dict[str, Any]:
    (member,) = TRAIN["spec"]["members"]
    (claim,) = member["claims"]
    exactly = {"deviceClassName": "gpu.example.com", "count": gpus}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    members = [{**member, "count": pods, "claims": [{**claim, "spec": spec}]}]
    metadata = {"name": name, "namespace": "team-a"}
    return {**TRAIN, "metadata": metadata, "spec": {"members": members}}


def write(path: Path, *objects: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def run(*options: str) -> Result:
    return CliRunner().invoke(app, ["what-if", *options], catch_exceptions=False)


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    nodes = (node_slice("n-0"), node_slice("n-1"))
    return write(tmp_path / "fleet.yaml", CLASS, *nodes, gang("train", 2))


def test_a_node_less_and_nodes_more(fleet: str, tmp_path: Path) -> None:
    lost = run("-f", fleet, "--without-node", "n-1")
    assert lost.exit_code == 1
    assert "allocated on 2 nodes" in lost.output
    assert "none" in lost.output
    more = write(tmp_path / "more.yaml", gang("more", 2))
    refused = run("-f", fleet, "--add", more, "-o", "json")
    assert refused.exit_code == 1
    grown = run("-f", fleet, "--add", more, "--add-nodes", "n-0=2", "-o", "json")
    assert grown.exit_code == 0
    fates = {each["name"]: each for each in json.loads(grown.stdout)["gangs"]}
    assert "before" not in fates["team-a/more"]
    assert fates["team-a/more"]["after"]["verdict"] == "allocated"
    tainted = run("-f", fleet, "--taint", "gpu.example.com/n-0/gpu-0", "--all")
    assert tainted.exit_code == 1
    assert "DevicesTainted" in tainted.output.replace("\n", "")


def test_the_forecast_of_files_is_their_plan(fleet: str, tmp_path: Path) -> None:
    more = write(tmp_path / "more.yaml", gang("more", 1))
    forecast = json.loads(run("-f", fleet, "--add", more, "-o", "json").stdout)
    planned = CliRunner().invoke(app, ["plan", "-f", fleet, "-f", more, "-o", "json"])
    assert forecast["decisions"]["after"] == [json.loads(planned.stdout)["problemHash"]]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--taint", "gpu-0"),
        ("--add-nodes", "n-0"),
        ("--add-nodes", "n-0=0"),
        ("--quota", "team-a=5"),
        ("--quota", "team-a/gpu=many"),
    ],
)
def test_what_has_no_meaning_is_refused(fleet: str, options: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        run("-f", fleet, *options)


def test_who_is_not_there_is_named(fleet: str) -> None:
    with pytest.raises(UnknownNameError, match="nobody"):
        run("-f", fleet, "--free", "nobody")


def test_a_recorded_solve_is_asked_from_its_file(tmp_path: Path) -> None:
    world = World(1)
    world.submit("first", priority=1)
    world.submit("second")
    problem = problem_of(world.snapshot)
    file = tmp_path / "solve.moorings"
    file.write_bytes(dump_export(recorded(problem, allocate(problem), CLUSTER)))
    done = run("--solve", str(file), "--free", "first", "-o", "json")
    assert done.exit_code == 0
    fates = {each["name"]: each for each in json.loads(done.stdout)["gangs"]}
    assert fates["team-a/second"]["before"]["verdict"] == "waits"
    assert fates["team-a/second"]["after"]["verdict"] == "allocated"
    assert "after" not in fates["team-a/first"]
    with pytest.raises(UsageError, match="--solve"):
        run("--solve", str(file), "-f", str(file), "--free", "first")


def test_a_gang_that_runs_is_left_out_of_files(tmp_path: Path) -> None:
    holds = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": "n-0",
        "device": "gpu-0",
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "runs-gpu", "namespace": "team-a"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [holds]}},
            "reservedFor": [{"resource": "pods", "name": "runs", "uid": "u"}],
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "runs", "namespace": "team-a", "uid": "u"},
        "spec": {
            "nodeName": "n-0",
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "runs-gpu"}],
        },
        "status": {"phase": "Running"},
    }
    objects = (CLASS, node_slice("n-0"), claim, pod, gang("train", 1))
    file = write(tmp_path / "all.yaml", *objects)
    done = run("-f", file, "--free", "team-a/runs", "-o", "json")
    assert done.exit_code == 0, done.output
    (train,) = json.loads(done.stdout)["gangs"]
    assert train["before"]["verdict"] == "none"
    assert train["after"]["verdict"] == "allocated"
