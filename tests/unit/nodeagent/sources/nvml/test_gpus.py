"""What is read of GPUs and partitions, and how NVML's answers are recorded."""

from __future__ import annotations

import pytest

from nodeagent.sources.nvml.calls import NvmlError
from nodeagent.sources.nvml.gpus import Fabric, MigPlacement, read_driver, read_gpus
from nodeagent.sources.nvml.record import record
from nodeagent.sources.nvml.recording import Answered, Player, read_recording
from tests.builders.nvml import play


def test_eight_gpus_of_an_hgx_node() -> None:
    gpus, unread = read_gpus(play("hgx-h100"))
    assert (len(gpus), unread) == (8, ())
    assert [gpu.bus_id for gpu in gpus][:2] == ["0000:a4:00.0", "0000:ae:00.0"]
    assert {gpu.active_links for gpu in gpus} == {18}
    assert not any(gpu.is_mig for gpu in gpus)
    assert read_driver(play("hgx-h100")).driver == "550.54.15"


def test_partitions_have_their_profile_and_their_place() -> None:
    (gpu, other), _ = read_gpus(play("a100-mig"))
    assert [
        (found.profile.name, found.placement, found.gpu_instance)
        for found in gpu.partitions
    ] == [
        ("MIG 3g.20gb", MigPlacement(4, 4), 1),
        ("MIG 2g.10gb", MigPlacement(2, 2), 3),
        ("MIG 1g.5gb", MigPlacement(1, 1), 9),
    ]
    assert other.partitions == ()


def test_an_instance_with_several_compute_instances_is_withheld() -> None:
    """They share its memory, which no counter of their own can say."""
    player = play("a100-mig")
    player.answer("nvmlDeviceGetGpuInstanceId", ("gpu-0/mig-1",), Answered(result=1))
    (gpu, _), _ = read_gpus(player)
    assert [found.gpu_instance for found in gpu.partitions] == [9]
    assert gpu.withheld == ("gpu-0: GPU instance 1 has compute instances",)


def test_without_the_right_to_see_instances_partitions_are_withheld() -> None:
    """That takes a privileged user; nothing is offered whose place is not known."""
    player = play("a100-mig")
    for number in (1, 3, 9):
        player.answer(
            "nvmlDeviceGetGpuInstanceById",
            ("gpu-0", number),
            Answered(error="NVML_ERROR_NO_PERMISSION"),
        )
    (gpu, _), _ = read_gpus(player)
    assert gpu.partitions == ()
    assert len(gpu.withheld) == 3


@pytest.mark.parametrize(
    "answered",
    [
        Answered(error="NVML_ERROR_GPU_IS_LOST"),
        Answered(result="../../etc/passwd"),
        Answered(result=7),
    ],
)
def test_one_gpu_that_cannot_be_read_is_left_out_alone(answered: Answered) -> None:
    player = play("hgx-h100")
    player.answer("nvmlDeviceGetUUID", ("gpu-3",), answered)
    gpus, unread = read_gpus(player)
    assert [gpu.minor for gpu in gpus] == [0, 1, 2, 4, 5, 6, 7]
    assert len(unread) == 1
    assert unread[0].startswith("GPU 3: nvmlDeviceGetUUID: ")


def test_what_a_gpu_does_not_support_is_left_out() -> None:
    player = play("hgx-h100")
    refused = Answered(error="NVML_ERROR_NOT_SUPPORTED")
    for function in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMigMode"):
        player.answer(function, ("gpu-0",), refused)
    gpu = read_gpus(player)[0][0]
    assert (gpu.memory_bytes, gpu.is_mig) == (None, False)


def test_without_the_driver_nothing_can_be_read() -> None:
    player = play("hgx-h100")
    gone = Answered(error="NVML_ERROR_DRIVER_NOT_LOADED")
    player.answer("nvmlDeviceGetCount_v2", (), gone)
    with pytest.raises(NvmlError, match="DRIVER_NOT_LOADED"):
        read_gpus(player)


def test_a_fabric_domain_is_a_uuid_once_it_is_joined() -> None:
    joined = Fabric(tuple(range(16)), 0, 7, 3)
    assert joined.is_joined
    assert joined.uuid == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert not Fabric(tuple(range(16)), 0, 7, 2).is_joined
    assert Fabric((0,) * 16, 0, 0, 3).uuid == ""


@pytest.mark.parametrize("name", ["hgx-h100", "a100-mig"])
def test_a_record_of_a_player_plays_the_same_gpus(name: str) -> None:
    """The tool records all that the source asks for."""
    text = record(play(name), "a test").decode()
    recording = read_recording(text)
    assert recording.origin == "a test"
    again = Player(recording)
    assert read_gpus(again) == read_gpus(play(name))
    assert read_driver(again) == read_driver(play(name))
    assert again.call("nvmlDeviceGetTotalEccErrors", "gpu-0", 1, 0) == 0
    assert again.call("nvmlDeviceGetSupportedEventTypes", "gpu-0") & 8


def test_answers_come_in_order_and_the_last_one_stays() -> None:
    player = play("hgx-h100")
    player.answer("f", (1,), Answered(result=1), Answered(error="NVML_ERROR_UNKNOWN"))
    assert player.call("f", 1) == 1
    for _ in range(2):
        with pytest.raises(NvmlError, match="NVML_ERROR_UNKNOWN"):
            player.call("f", 1)


def test_what_was_not_recorded_is_not_supported() -> None:
    with pytest.raises(NvmlError, match="NOT_SUPPORTED"):
        play("hgx-h100").call("nvmlDeviceGetFanSpeed", "gpu-0")


def test_a_time_out_takes_its_time() -> None:
    slept: list[float] = []
    recording = read_recording(
        '{"origin": "", "calls": [{"function": "nvmlEventSetWait_v2", "arguments":'
        ' ["events", 5000], "answers": [{"error": "NVML_ERROR_TIMEOUT"}]}]}'
    )
    with pytest.raises(NvmlError):
        Player(recording, slept.append).call("nvmlEventSetWait_v2", "events", 5000)
    assert slept == [5.0]
