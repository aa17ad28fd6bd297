"""The same pod with two cats, in every version of `resource.k8s.io` there was.

The examples are those of Kubernetes' documentation of 1.30 to 1.37, with what was
misprinted there put right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorings.cli.exit_codes import ExitCode
from moorings.migration.migrate import Migration
from tests.lab.command_line import moorings
from tests.lab.controlplane.client import Kube

OLDER = Path(__file__).parents[1] / "data" / "older"
VERSIONS = ("v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1")
CATS = {"tom", "felix"}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_planned_alike(version: str, tmp_path: Path) -> None:
    """Two of the three cats are black; lint finds nothing."""
    file = str(OLDER / f"{version}.yaml")
    done = moorings("plan", "-f", file, "-o", "json", home=tmp_path)
    assert done.returncode == ExitCode.YES, done.stderr
    claims = yaml.safe_load(done.stdout)["claims"]
    devices = {
        result["device"]
        for claim in claims
        for result in claim["allocation"]["devices"]["results"]
    }
    assert devices == CATS
    linted = moorings("lint", "-f", file, "--strict", home=tmp_path)
    assert linted.returncode == ExitCode.YES, linted.stdout


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_written_is_taken_by_an_api_server(
    version: str, kube: Kube, namespace: str
) -> None:
    """Every object is stored, with all of its fields, as it was written."""
    said: list[str] = []
    migration = Migration(said.append)
    text = (
        (OLDER / f"{version}.yaml")
        .read_text()
        .replace("namespace: cats", f"namespace: {namespace}")
    )
    text = text.replace("resource.example.com}", f"{namespace}.example.com}}")
    documents = [("f", raw) for raw in yaml.safe_load_all(text)]
    written = list(migration.migrate(documents))
    assert migration.refused == 0, said
    kinds = [value["kind"] for value in written if "cats" not in value["apiVersion"]]
    assert sorted(kinds) == ["DeviceClass", "Pod", "ResourceClaimTemplate"]
    for value in written:
        if "cats" in value["apiVersion"]:
            continue
        stored: dict[str, Any] = await kube.create(value)
        assert value["spec"].items() <= _as_written(value, stored).items()
        await kube.delete(stored)


def _as_written(value: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a stored object what the API server filled in."""
    return {
        key: _only(value["spec"][key], stored["spec"][key]) for key in value["spec"]
    }


def _only(written: Any, stored: Any) -> Any:
    if isinstance(written, dict):
        return {key: _only(each, stored[key]) for key, each in written.items()}
    if isinstance(written, list):
        return [_only(a, b) for a, b in zip(written, stored, strict=True)]
    return stored
