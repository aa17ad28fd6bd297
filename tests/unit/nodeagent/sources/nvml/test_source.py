"""The source `nvml` over recorded GPUs, and when one of them is bad."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.cdi import find_violations
from nodeagent.errors import SettingsError, SourceError
from nodeagent.health import Symptom
from nodeagent.sources.nvml.calls import NvmlError
from nodeagent.sources.nvml.events import Events
from nodeagent.sources.nvml.gpus import read_gpus
from nodeagent.sources.nvml.health import (
    APPLICATION_XIDS,
    XID_EVENT,
    GpuEvent,
    GpuHealth,
    judge_event,
    read_health,
)
from nodeagent.sources.nvml.recording import Answered, Player
from nodeagent.sources.nvml.source import NvmlSource, open_nvml
from tests.builders.nvml import DRIVER, NODE, RECORDED, make_spec, open_player, play
from tests.builders.sysfs import lay_out

WITHIN_S = 30.0
WAIT = ("nvmlEventSetWait_v2", ("events", 5000))
TIMED_OUT = Answered(error="NVML_ERROR_TIMEOUT")


def device_id(name: str) -> DeviceID:
    return DeviceID(DriverName(DRIVER), PoolName(NODE), DeviceName(name))


def hear(player: Player, xid: int, gpu: str, instance: int = 0xFFFFFFFF) -> None:
    """Let the next wait for events tell of one; later ones take time again."""
    event = {
        "device": gpu,
        "eventType": XID_EVENT,
        "eventData": xid,
        "gpuInstanceId": instance,
        "computeInstanceId": 0,
    }
    player.answer(*WAIT, Answered(result=event), TIMED_OUT)


async def read_until_bad(source: NvmlSource) -> list[tuple[DeviceID, str]]:
    """Read until an event was heard: it is told in a thread."""
    ends_s = time.monotonic() + WITHIN_S
    while time.monotonic() < ends_s:
        readings = (await source.read(1.0)).symptoms.get(NODE, ())
        if readings:
            assert {found.symptom for found in readings} == {Symptom.BAD}
            return [(found.device, found.reason) for found in readings]
    raise AssertionError("no event was heard")


async def test_gpus_are_where_sys_has_them(tmp_path: Path) -> None:
    lay_out("hgx-h100", tmp_path / "sys")
    source = open_player(tmp_path, play("hgx-h100"))
    (pool,) = (await source.discover(NODE)).pools
    assert len(pool.devices) == 8
    attributes = pool.devices[4].attributes
    assert attributes["resource.kubernetes.io/pcieRoot"].string_value == "pci0000:c8"
    assert attributes["resource.kubernetes.io/numaNode"].int_value == 1
    source.close()


async def test_a_gpu_of_a_virtual_machine_has_what_it_shows(tmp_path: Path) -> None:
    """A record of a GPU that was there: no NVLink, no fabric, no NUMA node."""
    lay_out("h100-virtual", tmp_path / "sys")
    source = open_player(tmp_path, play("h100-virtual"))
    (pool,) = (await source.discover(NODE)).pools
    (gpu,) = pool.devices
    assert gpu.name == "gpu-0"
    assert gpu.capacity["memory"].value.nano == 85_520_809_984 * 10**9
    values = {
        name: value.string_value or value.version_value
        for name, value in gpu.attributes.items()
    }
    assert values == {
        "architecture": "Hopper",
        "brand": "Nvidia",
        "cudaComputeCapability": "9.0.0",
        "cudaDriverVersion": "13.0.0",
        "driverVersion": "580.159.4",
        "productName": "NVIDIA H100 80GB HBM3",
        "resource.kubernetes.io/pciBusID": "0000:00:06.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
        "type": "gpu",
        "uuid": "GPU-00000000-0000-4000-8000-000000000001",
    }
    assert not (await source.read(1.0)).symptoms
    edits = await source.edits(device_id("gpu-0"))
    assert [node.path for node in edits.device_nodes] == [
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
    ]
    source.close()


async def test_a_partitioned_gpu_is_not_offered_itself(tmp_path: Path) -> None:
    source = open_player(tmp_path, play("a100-mig"))
    (pool,) = (await source.discover(NODE)).pools
    assert [device.name for device in pool.devices] == [
        "gpu-0-mig-1g-5gb-1",
        "gpu-0-mig-2g-10gb-2",
        "gpu-0-mig-3g-20gb-4",
        "gpu-1",
    ]
    assert [shared.name for shared in pool.shared_counters] == ["gpu-0-counter-set"]
    source.close()


async def test_an_xid_is_heard_without_being_asked_for(tmp_path: Path) -> None:
    player = play("hgx-h100")
    hear(player, 79, "gpu-2")
    source = open_player(tmp_path, player)
    assert await read_until_bad(source) == [(device_id("gpu-2"), "Xid79")]
    source.close()


async def test_an_xid_of_a_partition_is_its_own(tmp_path: Path) -> None:
    player = play("a100-mig")
    hear(player, 94, "gpu-0", instance=3)
    source = open_player(tmp_path, player)
    assert await read_until_bad(source) == [(device_id("gpu-0-mig-2g-10gb-2"), "Xid94")]
    source.close()


async def test_an_xid_of_a_whole_gpu_is_one_of_all_its_partitions(
    tmp_path: Path,
) -> None:
    player = play("a100-mig")
    hear(player, 48, "gpu-0")
    source = open_player(tmp_path, player)
    assert {device.device for device, _ in await read_until_bad(source)} == {
        "gpu-0-mig-1g-5gb-1",
        "gpu-0-mig-2g-10gb-2",
        "gpu-0-mig-3g-20gb-4",
    }
    source.close()


async def test_an_xid_is_forgotten_after_a_while(tmp_path: Path) -> None:
    player = play("hgx-h100")
    hear(player, 79, "gpu-2")
    source = open_player(tmp_path, player, holdSeconds=60)
    await read_until_bad(source)
    assert NODE in (await source.read(60.0)).symptoms
    assert (await source.read(61.0)).symptoms == {}
    source.close()


def test_a_gpu_without_events_takes_none_of_the_others() -> None:
    """It is said in the log; the rest is listened to."""
    player = play("hgx-h100")
    player.answer("nvmlDeviceGetSupportedEventTypes", ("gpu-0",), Answered(result=0))
    refused = Answered(error="NVML_ERROR_NOT_SUPPORTED")
    player.answer("nvmlDeviceGetSupportedEventTypes", ("gpu-1",), refused)
    hear(player, 79, "gpu-2")
    events = Events(player)
    events.listen(read_gpus(player)[0])
    ends_s = time.monotonic() + WITHIN_S
    while not (heard := events.take()):
        assert time.monotonic() < ends_s
    events.close()
    assert [event.event_data for event in heard] == [79]


async def test_without_the_library_there_are_no_devices(tmp_path: Path) -> None:
    """A node without GPUs may have the same sources file; it is no failure."""
    tries: list[int] = []
    player = play("hgx-h100")

    def open_calls() -> Player:
        tries.append(1)
        if len(tries) == 1:
            raise NvmlError("nvmlInit_v2", "NVML_ERROR_LIBRARY_NOT_FOUND")
        return player

    source = NvmlSource(make_spec(tmp_path, rescanSeconds=30), NODE, open_calls)
    assert (await source.read(0.0)).symptoms == {}
    assert (await source.discover(NODE)).device_ids == ()
    assert len(tries) == 1
    assert (await source.read(30.0)).changed == {NODE}, "the driver was installed"
    assert len((await source.discover(NODE)).device_ids) == 8
    source.close()


async def test_a_library_that_goes_makes_all_silent_until_it_is_back(
    tmp_path: Path,
) -> None:
    """As when the driver is updated; devices stay as they were announced."""
    player = play("hgx-h100")
    source = open_player(tmp_path, player, healthSeconds=5)
    await source.read(0.0)
    ecc = ("nvmlDeviceGetTotalEccErrors", ("gpu-0", 1, 0))
    player.answer(*ecc, Answered(error="NVML_ERROR_UNINITIALIZED"))
    with pytest.raises(SourceError, match="UNINITIALIZED"):
        await source.read(5.0)
    count = ("nvmlDeviceGetCount_v2", ())
    player.answer(*count, Answered(error="NVML_ERROR_DRIVER_NOT_LOADED"))
    for moment_s in (6.0, 7.0):
        with pytest.raises(SourceError, match="DRIVER_NOT_LOADED"):
            await source.read(moment_s)
    player.answer(*ecc, Answered(result=0))
    player.answer(*count, Answered(result=8))
    assert (await source.read(8.0)).symptoms == {}
    assert len((await source.discover(NODE)).device_ids) == 8
    source.close()


async def test_a_container_gets_the_driver_s_nodes(tmp_path: Path) -> None:
    source = open_player(tmp_path, play("hgx-h100"))
    edits = await source.edits(device_id("gpu-3"))
    assert list(find_violations(edits)) == []
    assert [node.path for node in edits.device_nodes] == [
        "/dev/nvidia3",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
    ]
    assert (
        "MOORINGS_UUID_N1_GPU_3=GPU-00000000-0000-4000-8000-000000000003" in edits.env
    )
    with pytest.raises(SourceError, match="is not here"):
        await source.edits(device_id("gpu-8"))
    described = await source.describe(device_id("gpu-3"))
    assert described.data["uuid"] == "GPU-00000000-0000-4000-8000-000000000003"
    assert described.card == described.data["uuid"]
    with pytest.raises(SourceError, match="is not here"):
        await source.describe(device_id("gpu-8"))
    source.close()


async def test_a_partition_needs_the_nodes_of_its_instances(tmp_path: Path) -> None:
    """By the numbers that the driver shows in /proc."""
    instance = tmp_path / "proc/driver/nvidia/capabilities/gpu0/mig/gi3"
    (instance / "ci0").mkdir(parents=True)
    (instance / "access").write_text("DeviceFileMinor: 30\nDeviceFileMode: 292\n")
    source = open_player(tmp_path, play("a100-mig"))
    partition = device_id("gpu-0-mig-2g-10gb-2")
    with pytest.raises(SourceError, match="ci0"):
        await source.edits(partition)
    (instance / "ci0" / "access").write_text("DeviceFileMinor: 31\n")
    edits = await source.edits(partition)
    assert [node.path for node in edits.device_nodes][:3] == [
        "/dev/nvidia0",
        "/dev/nvidia-caps/nvidia-cap30",
        "/dev/nvidia-caps/nvidia-cap31",
    ]
    data = (await source.describe(partition)).data
    assert str(data["uuid"]).startswith("MIG-")
    assert str(data["parentUUID"]).startswith("GPU-")
    source.close()


async def test_a_record_is_opened_by_the_sources_file(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, recording="a100-mig.json")
    async with open_nvml(spec, NODE, RECORDED) as source:
        assert len((await source.discover(NODE)).device_ids) == 4
        with pytest.raises(SourceError, match="no node is named"):
            await source.discover(NodeName("n2"))


async def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"calls": 7}')
    with pytest.raises(SettingsError, match=r"broken\.json: is not a record"):
        async with open_nvml(
            make_spec(tmp_path, recording="broken.json"), NODE, tmp_path
        ):
            pass


NOTHING: frozenset[int] = frozenset()
ECC = ("nvmlDeviceGetTotalEccErrors", ("gpu-0", 1, 0))
ROWS = ("nvmlDeviceGetRemappedRows", ("gpu-0",))


def event(xid: int, kind: int = XID_EVENT) -> GpuEvent:
    return GpuEvent("gpu-0", kind, xid)


@pytest.mark.parametrize("xid", [48, 63, 74, 79, 94, 95, 119, 999])
def test_an_xid_is_a_fault_with_its_number(xid: int) -> None:
    """Also one that nobody knows yet."""
    fault = judge_event(event(xid), NOTHING, 60.0, 1.0)
    assert fault is not None
    assert (fault.reason, fault.until_s) == (f"Xid{xid}", 61.0)


@pytest.mark.parametrize("xid", sorted(APPLICATION_XIDS))
def test_what_applications_bring_about_is_no_fault_of_the_gpu(xid: int) -> None:
    assert judge_event(event(xid), NOTHING, 60.0, 1.0) is None


def test_further_xids_may_be_ignored() -> None:
    assert judge_event(event(79), frozenset({79}), 60.0, 1.0) is None


def test_other_events_say_nothing() -> None:
    assert judge_event(event(79, kind=0x4), NOTHING, 60.0, 1.0) is None


def reasons(player: Player, before: GpuHealth | None = None) -> list[str]:
    gpu = read_gpus(play("hgx-h100"))[0][0]
    health = read_health(player, gpu, before or GpuHealth(), 60.0, 1.0)
    return [fault.reason for fault in health.faults]


def test_a_gpu_that_is_well() -> None:
    assert reasons(play("hgx-h100")) == []


def test_uncorrectable_errors_that_rise_are_held() -> None:
    gpu = read_gpus(play("hgx-h100"))[0][0]
    player = play("hgx-h100")
    player.answer(*ECC, Answered(result=5), Answered(result=7))
    first = read_health(player, gpu, GpuHealth(), 60.0, 0.0)
    assert first.faults == (), "errors from before: nobody knows how old they are"
    risen = read_health(player, gpu, first, 60.0, 5.0)
    assert [fault.reason for fault in risen.faults] == ["EccUncorrectable"]
    assert read_health(player, gpu, risen, 60.0, 65.0).faults == ()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([3, 1, 0, 0], []),  # remapped already
        ([0, 1, 1, 0], ["RowRemapPending"]),
        ([0, 9, 0, 1], ["RowRemapFailed"]),
        ([0, 9, 1, 1], ["RowRemapPending", "RowRemapFailed"]),
        ([1], []),
    ],
)
def test_rows_that_wait_for_a_reset(rows: list[int], expected: list[str]) -> None:
    player = play("hgx-h100")
    player.answer(*ROWS, Answered(result=rows))
    assert reasons(player) == expected


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("NVML_ERROR_GPU_IS_LOST", "GpuLost"),
        ("NVML_ERROR_RESET_REQUIRED", "ResetRequired"),
    ],
)
def test_a_gpu_that_is_gone_is_a_fault_of_its_own(code: str, reason: str) -> None:
    player = play("hgx-h100")
    player.answer(*ECC, Answered(error=code))
    assert reasons(player) == [reason]


def test_a_library_that_is_gone_is_no_fault_of_any_gpu() -> None:
    player = play("hgx-h100")
    player.answer(*ECC, Answered(error="NVML_ERROR_DRIVER_NOT_LOADED"))
    with pytest.raises(NvmlError):
        reasons(player)
