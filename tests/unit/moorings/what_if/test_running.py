"""The gangs that run in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorings.cli.documents import read_objects
from moorings.what_if.running import read_running
from solver.snapshot.snapshot import Snapshot
from tests.builders.running import list_running


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_all(*objects: dict[str, Any]) -> Snapshot:
        file = tmp_path / "cluster.yaml"
        file.write_text(yaml.safe_dump_all(objects))
        return read_running(read_objects([str(file)]).objects)

    return read_all


def places(snapshot: Snapshot) -> dict[str, list[str]]:
    return {
        record.name: [
            str(result.device_id)
            for pod in record.placed.members
            for each in pod.claims
            for result in each.allocation.devices.results
        ]
        for record in snapshot.placed.values()
        if record.placed is not None
    }


def test_pods_that_run_are_gangs_with_their_places(read: Any) -> None:
    found = read(*list_running("a", "n-0", "gpu-0", "gpu-1"))
    pool = "gpu.example.com/n-0"
    assert places(found) == {"a": [f"{pool}/gpu-0", f"{pool}/gpu-1"]}
    assert not list(found.waiting.values())
    assert not found.claims.get("team-a/a-gpu-x")


def test_pods_of_which_nobody_knows_what_they_ask_stay_pods(read: Any) -> None:
    template, claim, pod = list_running("a", "n-0", "gpu-0")
    assert places(read(claim, pod)) == {}
    named = [{"name": "gpu", "resourceClaimName": "a-gpu-x"}]
    owner = {**pod, "spec": {**pod["spec"], "resourceClaims": named}}
    found = read(template, claim, owner)
    assert places(found) == {}
    held = found.claims.get("team-a/a-gpu-x")
    assert held is not None
    assert held.allocation is not None


def test_a_pod_that_waits_is_a_gang_that_waits(read: Any) -> None:
    template, _, pod = list_running("a", "n-0", "gpu-0")
    spec = {**pod["spec"], "nodeName": None}
    found = read(template, {**pod, "spec": spec, "status": {}})
    assert [each.name for each in found.waiting.values()] == ["a"]
