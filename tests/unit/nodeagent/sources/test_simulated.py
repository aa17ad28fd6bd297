"""The simulated source: a fleet, and faults put in while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.errors import SettingsError, SourceError
from nodeagent.sources.simulated import SimulatedSource, open_simulated

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
nodes:
- shape: n
  count: 2
  devices:
  - {driver: gpu.example.com, count: 2, name: "gpu-{index}"}
faults:
- {node: n-1, device: gpu-0, verdict: Unhealthy, at: 5s, for: 5s}
"""
N0, N1 = NodeName("n-0"), NodeName("n-1")
DEVICE_OF_N0 = DeviceID(
    DriverName("gpu.example.com"), PoolName("n-0"), DeviceName("gpu-0")
)
START_S = 1000.0


def opened(folder: Path, node: NodeName | None = None) -> SimulatedSource:
    fleet = folder / "fleet.yaml"
    fleet.write_text(FLEET)
    return open_simulated(fleet, folder / "faults.yaml", node)


def inject(folder: Path, text: str) -> None:
    new = folder / "new.yaml"
    new.write_text(text)
    new.replace(folder / "faults.yaml")


async def test_time_runs_from_the_first_reading(tmp_path: Path) -> None:
    """Faults are due by the time since then, not by the clock."""
    source = opened(tmp_path)
    seen = [bool((await source.read(START_S + t)).symptoms) for t in (0, 4, 6, 11)]
    assert seen == [False, False, True, False]


async def test_injected_faults_run_from_when_they_are_read(tmp_path: Path) -> None:
    """Their times count from the reading that found the file."""
    source = opened(tmp_path)
    await source.read(START_S)
    inject(tmp_path, "faults: [{node: n-0, verdict: Unhealthy, at: 2s, for: 2s}]")
    seen = [N0 in (await source.read(START_S + t)).symptoms for t in (50, 51, 53, 55)]
    assert seen == [False, False, True, False]


async def test_faults_end_with_their_file(tmp_path: Path) -> None:
    """Without the file there are no injected faults."""
    source = opened(tmp_path)
    inject(tmp_path, '{"faults": [{"node": "n-0", "verdict": "Away"}]}')
    assert (await source.read(START_S)).away == {N0}
    (tmp_path / "faults.yaml").unlink()
    assert (await source.read(START_S + 1)).away == frozenset()


async def test_a_refused_faults_file_changes_nothing(tmp_path: Path) -> None:
    """What was in force stays until a file can be read again."""
    source = opened(tmp_path)
    inject(tmp_path, "faults: [{node: n-0, verdict: Away}]")
    assert (await source.read(START_S)).away == {N0}
    inject(tmp_path, "faults: [{node: nobody, verdict: Away}]")
    assert (await source.read(START_S + 1)).away == {N0}
    inject(tmp_path, "")
    assert (await source.read(START_S + 2)).away == frozenset()


async def test_a_removed_device_leaves_and_returns(tmp_path: Path) -> None:
    """Each change of the inventory is told once."""
    source = opened(tmp_path)
    await source.read(START_S)
    inject(tmp_path, "faults: [{node: n-0, device: gpu-1, verdict: Removed}]")
    assert (await source.read(START_S + 1)).changed == {N0}
    names = [id_.device for id_ in (await source.discover(N0)).device_ids]
    assert names == ["gpu-0"]
    assert (await source.read(START_S + 2)).changed == frozenset()
    inject(tmp_path, "")
    assert (await source.read(START_S + 3)).changed == {N0}
    assert len((await source.discover(N0)).device_ids) == 2


async def test_one_node_of_a_fleet_has_its_own_faults_alone(tmp_path: Path) -> None:
    """An agent of one node reads nothing of the others."""
    source = opened(tmp_path, N1)
    assert source.nodes == (N1,)
    inject(tmp_path, 'faults: [{node: "*", verdict: Unhealthy}]')
    assert (await source.read(START_S)).symptoms.keys() == {N1}


async def test_a_node_that_the_fleet_has_not_has_no_devices(tmp_path: Path) -> None:
    """A DaemonSet's agent stays up on it, and other sources can go on."""
    stranger = NodeName("n-9")
    source = opened(tmp_path, stranger)
    assert (source.nodes, source.drivers) == ((stranger,), ())
    assert (await source.discover(stranger)).pools == ()
    assert (await source.read(START_S)).symptoms == {}
    with pytest.raises(SourceError, match="is not here"):
        await source.edits(DEVICE_OF_N0)


async def test_discovering_a_stranger_is_refused(tmp_path: Path) -> None:
    """A source answers for its own nodes alone."""
    with pytest.raises(SourceError, match="no node is named 'n-9'"):
        await opened(tmp_path).discover(NodeName("n-9"))


def test_a_missing_fleet_file_is_named(tmp_path: Path) -> None:
    """The error says which file cannot be read."""
    with pytest.raises(SettingsError, match="cannot be read"):
        open_simulated(tmp_path / "none.yaml", None, None)


async def test_a_container_is_told_the_name_of_its_device(tmp_path: Path) -> None:
    """And a device of nobody is refused."""
    source = opened(tmp_path, N0)
    assert source.drivers == ("gpu.example.com",)
    device = (await source.discover(N0)).device_ids[0]
    assert (await source.edits(device)).env == (f"MOORINGS_DEVICE_N_0_GPU_0={device}",)
    assert source.find_hooks(device) is None
    stranger = DeviceID(device.driver, device.pool, DeviceName("gpu-9"))
    with pytest.raises(SourceError, match="gpu-9 is not here"):
        await source.edits(stranger)


def test_a_fleet_may_be_of_whatever_node_the_agent_is_on(tmp_path: Path) -> None:
    """`{node}` is its name; without an agent's node there is none."""
    fleet = tmp_path / "fleet.yaml"
    text = FLEET.replace("count: 2\n", 'count: 1\n  name: "{node}"\n', 1)
    fleet.write_text(text.partition("faults:")[0])
    named = NodeName("worker-7.example.com")
    assert open_simulated(fleet, None, named).nodes == (named,)
    assert open_simulated(fleet, None, named).drivers == ("gpu.example.com",)
    with pytest.raises(SettingsError, match=r"nodes\[0\]\.name: has \{node\}"):
        open_simulated(fleet, None, None)
