"""Records of NVML's answers, made and played."""

from __future__ import annotations

import pytest

from nodeagent.sources.nvml.calls import NvmlError
from nodeagent.sources.nvml.gpus import read_driver, read_gpus
from nodeagent.sources.nvml.record import record
from nodeagent.sources.nvml.recording import Answered, Player, read_recording
from tests.builders.nvml import play


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
