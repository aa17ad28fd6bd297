"""Opening what a sources file lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.ids import NodeName
from nodeagent.errors import SettingsError
from nodeagent.sources.open_sources import open_sources

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: lab
nodes:
- shape: n
  count: 1
  labels: {rack: r1}
  resources: {cpu: "4"}
  devices:
  - {driver: gpu.example.com, count: 2, name: "gpu-{index}"}
"""
SOURCES = """
apiVersion: moorings.dev/v1alpha1
kind: Sources
sources:
- {kind: simulated, name: lab, fleet: fleet.yaml}
"""
NODE = NodeName("n-0")


async def test_files_are_found_beside_the_sources_file(tmp_path: Path) -> None:
    """A folder of settings can be moved as a whole."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    (tmp_path / "sources.yaml").write_text(SOURCES)
    async with open_sources(tmp_path / "sources.yaml", NODE) as source:
        devices = await source.discover(NODE)
    assert len(devices.device_ids) == 2
    assert devices.labels == {"rack": "r1"}
    assert devices.resources.keys() == {"cpu"}


async def test_a_wrong_file_is_refused_before_anything_is_open(tmp_path: Path) -> None:
    """Also one that the sources file names."""
    (tmp_path / "sources.yaml").write_text(SOURCES)
    with pytest.raises(SettingsError, match=r"fleet.yaml: cannot be read"):
        async with open_sources(tmp_path / "sources.yaml", NODE):
            pass
