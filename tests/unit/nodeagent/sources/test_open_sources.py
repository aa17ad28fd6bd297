"""Opening what a sources file lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.errors import SettingsError
from nodeagent.sources.open_sources import open_sources
from nodeagent.sources.source import PartitionHooks

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


COUNTED = """
apiVersion: moorings.dev/v1alpha1
kind: Sources
sources:
- kind: counted
  name: dongles
  driver: a.io
  resources: [{name: dongle, count: 1}]
  programs: {setUp: [/opt/up, -v], tearDown: [/opt/down], limitSeconds: 3}
- kind: counted
  name: others
  driver: b.io
  resources: [{name: dongle, count: 1}]
"""


async def test_a_source_names_programs_that_set_its_devices_up(tmp_path: Path) -> None:
    """Also for a device that is gone: it is torn down all the same."""
    (tmp_path / "sources.yaml").write_text(COUNTED)
    hooks = PartitionHooks(
        set_up=("/opt/up", "-v"), tear_down=("/opt/down",), limit_s=3.0
    )
    async with open_sources(tmp_path / "sources.yaml", NODE) as source:
        await source.discover(NODE)
        for name in ("dongle-0", "gone"):
            a, b = (
                DeviceID(DriverName(driver), PoolName(NODE), DeviceName(name))
                for driver in ("a.io", "b.io")
            )
            assert source.find_hooks(a) == hooks
            assert source.find_hooks(b) is None
